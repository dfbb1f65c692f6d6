import { S3Error } from '../../../common/errors/s3-error.js'
import { parseDocument } from '../../../common/xml/xml.js'
import type { S3Request } from '../../../request/s3-request.js'
import { formatOfType } from './format.js'
import { readForm } from './read-form.js'
import { fromJson, parseJson } from './read-json.js'
import { fieldsNode, fromText } from './read-text.js'
import type { Shape } from './shape.js'

const MAX_BYTES = 1024 * 1024
const FORM = 'application/x-www-form-urlencoded'

/**
 * Reads the body of a call into the shape of its schema; an empty body is an empty document. Content-Type selects JSON,
 * XML or a form, urlencoded or multipart. `curl -d` and `aws s3api put-object` send no useful type, so for other types
 * the first character decides.
 * @throws EntityTooLarge, InvalidRequest, MalformedXML, InvalidArgument
 */
export async function readBody(
  { body, headers }: Pick<S3Request, 'body' | 'headers'>,
  shape: Shape,
  aliases: ReadonlyMap<string, string>,
): Promise<unknown> {
  const bytes = await collect(body)
  const type = headers['content-type']
  if (type !== undefined && /^multipart\/form-data\b/i.test(type)) {
    return fromText(shape, await readForm(bytes, type, shape), '', aliases)
  }
  const text = utf8(bytes)
  const said = formatOfType(type)
  const first = text.trimStart()[0]
  if (first === undefined) return fromText(shape, fieldsNode([]))
  if (said === 'json' || (!said && first === '{')) return fromJson(shape, objectOf(parseJson(text)), '', aliases)
  if (said === 'xml' || first === '<') return fromText(shape, (await parseDocument(bytes)).node, '', aliases)
  if (type === undefined || type.toLowerCase().startsWith(FORM)) {
    return fromText(shape, fieldsNode(new URLSearchParams(text.trim())), '', aliases)
  }
  throw new S3Error('InvalidRequest', { message: 'The body must be JSON, XML or the fields of a form.' })
}

async function collect(body: S3Request['body']): Promise<Buffer> {
  try {
    return (await body.collect(MAX_BYTES)).bytes
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'MaxMessageLengthExceeded') throw error
    throw new S3Error('EntityTooLarge', {
      message: `The body of a call may have at most ${MAX_BYTES} bytes.`,
      fields: { MaxSizeAllowed: MAX_BYTES },
    })
  }
}

/** Decodes UTF-8 and removes a byte order mark. */
function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('InvalidRequest', { message: 'The body is not valid UTF-8.', cause })
  }
}

function objectOf(value: unknown): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new S3Error('InvalidRequest', { message: 'The body must be a JSON object.' })
}
