import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Tag } from '../../state/state.js'
import { checkTags, OBJECT_TAGS } from './tag-rules.js'

export const TAGGING = 'x-amz-tagging'
export const TAGGING_DIRECTIVE = 'x-amz-tagging-directive'

/**
 * Reads the tags in x-amz-tagging of a write, `key=value&...` in URL encoding; undefined if there are none.
 * @throws S3Error InvalidArgument, InvalidTag
 */
export function taggingOfHeader(headers: IncomingHttpHeaders): readonly Tag[] | undefined {
  const value = headers[TAGGING]
  if (value === undefined || value === '') return undefined
  const text = String(value)
  const tags = text
    .split('&')
    .filter(Boolean)
    .map((pair): Tag => {
      const at = pair.indexOf('=')
      return at < 0
        ? { key: decode(pair, text), value: '' }
        : { key: decode(pair.slice(0, at), text), value: decode(pair.slice(at + 1), text) }
    })
  if (new Set(tags.map(({ key }) => key)).size < tags.length) throw malformed(text)
  checkTags(tags, OBJECT_TAGS)
  return tags.length === 0 ? undefined : tags
}

/**
 * Returns the tags of a copy: those of the source or, with x-amz-tagging-directive REPLACE, those of the request.
 * @throws S3Error InvalidArgument, also for tags without that directive, which would be lost
 */
export function taggingOfCopy(
  headers: IncomingHttpHeaders,
  source: readonly Tag[] | undefined,
): readonly Tag[] | undefined {
  const directive = headers[TAGGING_DIRECTIVE] ?? 'COPY'
  if (directive === 'REPLACE') return taggingOfHeader(headers)
  if (directive !== 'COPY') {
    throw new S3Error('InvalidArgument', {
      message: 'Unknown tagging directive.',
      fields: { ArgumentName: TAGGING_DIRECTIVE, ArgumentValue: String(directive) },
    })
  }
  if (headers[TAGGING] !== undefined) {
    throw new S3Error('InvalidArgument', {
      message: `A copy takes the tags of its source. To set the tags of ${TAGGING}, send ${TAGGING_DIRECTIVE}: REPLACE.`,
      fields: { ArgumentName: TAGGING },
    })
  }
  return source
}

function decode(text: string, header: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw malformed(header)
  }
}

function malformed(header: string): S3Error {
  return new S3Error('InvalidArgument', {
    message:
      "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.",
    fields: { ArgumentName: TAGGING, ArgumentValue: header.slice(0, 200) },
  })
}
