import { needsSandbox, SANDBOX } from '../../../common/sandbox.js'
import { wholeSeconds } from '../../clock.js'
import type { HeaderList } from '../../http/errors.js'
import { owns } from '../access.js'
import type { Names } from '../brand.js'
import type { ReadContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { type GatewayExchange, headerText, type ReadExchange } from '../exchange.js'
import type { BucketRow } from '../store/buckets.js'
import type { ObjectRow, OpenedObject } from '../store/object-row.js'

/** Query parameters of a download that override headers of the object. */
const OVERRIDES = [
  'content-type',
  'content-disposition',
  'content-encoding',
  'content-language',
  'cache-control',
  'expires',
] as const

/**
 * Headers that describe the object in a GET or HEAD response. Throws GatewayError when an override is not a valid
 * header value.
 */
export function objectHeaders({ names }: ReadContext, row: ObjectRow, query: URLSearchParams): HeaderList {
  const values: Record<string, string> = { 'content-type': row.contentType, ...row.headers }
  // Most requests have no query.
  for (const name of query.size === 0 ? [] : OVERRIDES) {
    const value = query.get(`response-${name}`)
    if (value !== null) values[name] = headerText(`response-${name}`, value)
  }
  const modified = new Date(wholeSeconds(row.modified) * 1000).toUTCString()
  const list: HeaderList = ['ETag', `"${row.etag}"`, 'Last-Modified', modified]
  list.push('Accept-Ranges', 'bytes', 'X-Content-Type-Options', 'nosniff')
  if (needsSandbox(values['content-type'])) list.push('Content-Security-Policy', SANDBOX)
  list.push(`${names.header}generation`, row.generation, `${names.header}last-modified`, row.modified)
  if (row.writeId !== null) list.push(`${names.header}write-id`, row.writeId)
  if (row.checksum !== null) list.push(`${names.header}checksum`, row.checksum)
  if (row.bodyAt === 'network') list.push(`${names.header}storage-state`, 'cold')
  for (const name in values) list.push(name, values[name] as string)
  return list
}

/** The attributes of an object in its upload request. Each character of a value is one byte received. */
interface Attributes {
  readonly contentType: string
  /** Headers to return on download, by lower-case name, user metadata included. */
  readonly headers: Readonly<Record<string, string>>
  /** ETag to store instead of the MD5 of the body; unquoted. */
  readonly etag?: string
  /** Algorithm and value of a checksum that the client has verified. */
  readonly checksum: string | null
}

const DEFAULT_TYPE = 'application/octet-stream'
const KEPT = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'] as const
const ETAG = /^"?([\w.+/=-]{1,128})"?$/
/** Algorithm, and the value in Base64: 64 bytes at most. */
const CHECKSUM = /^[A-Z0-9]{1,16} [A-Za-z0-9+/]{1,86}={0,2}$/
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

export function readAttributes({ request, context }: GatewayExchange): Attributes {
  const { names, limits } = context
  const headers: Record<string, string> = {}
  let metadataBytes = 0
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value !== 'string') continue
    const isMetadata = name.startsWith(`${names.header}meta-`)
    if (isMetadata) metadataBytes += name.length + value.length
    if (isKept(names, name) && NAME.test(name) && (isMetadata || value !== '')) headers[name] = value
  }
  if (metadataBytes > limits.maxMetadataBytes) throw new GatewayError('MetadataTooLarge')

  const contentType = request.headers['content-type'] || DEFAULT_TYPE
  const etag = readEtag(request.headers[`${names.header}etag`], names.header)
  const checksum = readChecksum(context, request.headers[`${names.header}checksum`])
  return etag === undefined ? { contentType, headers, checksum } : { contentType, headers, checksum, etag }
}

/** True for a header of an upload that is kept with the object, besides its type; `name` is in lower case. */
export function isKept({ header }: Pick<Names, 'header'>, name: string): boolean {
  return (
    name.startsWith(`${header}meta-`) || name === `${header}storage-class` || (KEPT as readonly string[]).includes(name)
  )
}

function readEtag(text: string | string[] | undefined, header: string): string | undefined {
  if (typeof text !== 'string') return undefined
  const etag = ETAG.exec(text)?.[1]
  if (etag === undefined) throw new GatewayError('InvalidHeader', { value: `${header}etag` })
  return etag
}

/** As with the ETag, the client is believed: the gateway computes none. */
function readChecksum({ names, features }: ReadContext, text: string | string[] | undefined): string | null {
  if (typeof text !== 'string' || !features.has('object-checksums')) return null
  if (!CHECKSUM.test(text)) throw new GatewayError('InvalidHeader', { value: `${names.header}checksum` })
  return text
}

/** Most characters of a record: visible ASCII. */
const MAX_RECORD = /^[\x20-\x7e]{1,8192}$/

export function isRecord(text: string): boolean {
  return MAX_RECORD.test(text)
}

/**
 * What the client wants to keep with the object, to which the gateway gives no meaning. Only the account that owns the
 * bucket keeps one; of anyone else it is ignored, because that account trusts what it reads there. Throws GatewayError
 * InvalidHeader.
 */
export function readRecord({ request, identity, context }: GatewayExchange, bucket: BucketRow): string | undefined {
  const name = `${context.names.header}record`
  const record = request.headers[name]
  if (typeof record !== 'string' || !context.features.has('object-records') || !owns(identity, bucket)) return undefined
  if (!isRecord(record)) throw new GatewayError('InvalidHeader', { value: name })
  return record
}

/** True when the client asks for the record of the object, with x-cloud-with-record. */
export function wantsRecord({ request, context: { names, features } }: ReadExchange): boolean {
  return request.headers[`${names.header}with-record`] !== undefined && features.has('object-records')
}

/** The record of the object and the fence of its last write, for the owner of the bucket. */
export function recordHeaders({ context: { names } }: ReadExchange, { row, record }: OpenedObject): HeaderList {
  return [
    ...[`${names.header}fence`, String(row.fence)],
    ...(record === undefined ? [] : [`${names.header}record`, record]),
  ]
}
