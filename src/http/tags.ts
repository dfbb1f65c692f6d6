import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren, type XmlNode } from '../../common/xml.js'
import type { Tag } from '../api/access.js'

/** Limits for the tags of buckets or objects, in addition to the rules for all tags. */
interface TagRules {
  readonly maxTags: number
  /** S3's error message for too many tags. */
  readonly tooMany: string
  /** S3's error message for a key that begins with `aws:`. */
  readonly reserved: string
}

export const OBJECT_TAGS: TagRules = {
  maxTags: 10,
  tooMany: 'Object tags cannot be greater than 10',
  reserved: 'Your TagKey cannot be prefixed with aws:',
}

export const BUCKET_TAGS: TagRules = {
  maxTags: 50,
  tooMany: 'Bucket tag count cannot be greater than 50',
  reserved: 'System tags cannot be added/updated by requester',
}

/** UTF-16 code units. */
const MAX_KEY = 128
const MAX_VALUE = 256

/** Letters, digits and white space of any script, and `+ - = . _ : / @`. */
const ALLOWED = /^[\p{L}\p{M}\p{Nd}\p{Nl}\p{No}\p{Zs}+\-=._:/@]*$/u

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html and CostAllocTagging.html of the same
 * guide.
 * @throws S3Error InvalidTag, BadRequest for too many
 */
export function checkTags(tags: readonly Tag[], rules: TagRules): void {
  if (tags.length > rules.maxTags) throw new S3Error('BadRequest', { message: rules.tooMany })
  const seen = new Set<string>()
  for (const { key, value } of tags) {
    if (key === '' || key.length > MAX_KEY || !ALLOWED.test(key)) {
      throw new S3Error('InvalidTag', { message: 'The TagKey you have provided is invalid', fields: { TagKey: key } })
    }
    if (value.length > MAX_VALUE || !ALLOWED.test(value)) {
      throw new S3Error('InvalidTag', {
        message: 'The TagValue you have provided is invalid',
        fields: { TagKey: key, TagValue: value },
      })
    }
    if (/^aws:/i.test(key)) {
      throw new S3Error('InvalidTag', { message: rules.reserved, fields: { TagKey: key } })
    }
    if (seen.has(key)) {
      throw new S3Error('InvalidTag', {
        message: 'Cannot provide multiple Tags with the same key',
        fields: { TagKey: key },
      })
    }
    seen.add(key)
  }
}

/** Reads a `<Tagging>` document. Throws S3Error MalformedXML, InvalidTag. */
export async function readTagging(bytes: Buffer, rules: TagRules): Promise<Tag[]> {
  const root = await parseXml(bytes, 'Tagging')
  requireChildren(root, 'Tagging', { once: ['TagSet'] })
  const set = root.children.get('TagSet')?.[0]
  if (!set) throw new S3Error('MalformedXML', { message: 'Tagging must hold one TagSet.' })
  return readTags(set, rules)
}

/** Reads the `<Tag>` elements of a set. Throws like readTagging. */
export function readTags(set: XmlNode | undefined, rules: TagRules): Tag[] {
  if (set) requireChildren(set, 'A set of tags', { many: ['Tag'] })
  const tags = (set?.children.get('Tag') ?? []).map((tag): Tag => {
    requireChildren(tag, 'Tag', { once: ['Key', 'Value'] })
    const key = childText(tag, 'Key')
    const value = childText(tag, 'Value')
    if (key === undefined || value === undefined)
      throw new S3Error('MalformedXML', { message: 'Every Tag needs a Key and a Value.' })
    return { key, value }
  })
  checkTags(tags, rules)
  return tags
}

export function taggingDocument(tags: readonly Tag[]): string {
  const set = tags.map(({ key, value }) => `<Tag>${element('Key', key)}${element('Value', value)}</Tag>`)
  return document('Tagging', `<TagSet>${set.join('')}</TagSet>`)
}

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
