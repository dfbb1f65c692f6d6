import { needsSandbox, SANDBOX } from '../../../common/sandbox.js'
import { wholeSeconds } from '../../clock.js'
import type { HeaderList } from '../../http/errors.js'
import { owns } from '../access.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { type GatewayExchange, headerText } from '../exchange.js'
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
export function objectHeaders({ names, quirks }: GatewayContext, row: ObjectRow, query: URLSearchParams): HeaderList {
  const values: Record<string, string> = { 'content-type': row.contentType, ...row.headers }
  if (quirks.has('forced-disposition')) {
    values['content-disposition'] = `attachment; filename="${lastElement(row.key)}"`
    values['cache-control'] = 'no-store'
  }
  // Most requests have no query.
  for (const name of query.size === 0 ? [] : OVERRIDES) {
    const value = query.get(`response-${name}`)
    if (value !== null) values[name] = headerText(`response-${name}`, value)
  }
  const modified = new Date(wholeSeconds(row.modified) * 1000).toUTCString()
  const list: HeaderList = ['ETag', `"${row.etag}"`, 'Last-Modified', modified]
  list.push('Accept-Ranges', 'bytes', 'X-Content-Type-Options', 'nosniff')
  if (needsSandbox(values['content-type'])) list.push('Content-Security-Policy', SANDBOX)
  if (!quirks.has('no-upload-etag')) {
    list.push(`${names.header}generation`, row.generation, `${names.header}last-modified`, row.modified)
  }
  if (row.writeId !== null) list.push(`${names.header}write-id`, row.writeId)
  if (row.bodyAt === 'network') list.push(`${names.header}storage-state`, 'cold')
  for (const name in values) list.push(name, values[name] as string)
  return list
}

/** The part of the key behind its last slash, for a quoted string; UTF-8 bytes, one character each. */
function lastElement(key: Buffer): string {
  const name = key.subarray(key.lastIndexOf('/') + 1).toString('latin1')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: headers cannot carry these characters
  return name.replace(/[\x00-\x1f\x7f]/g, '').replace(/["\\]/g, '\\$&')
}

/** The attributes of an object in its upload request. Each character of a value is one byte received. */
export interface Attributes {
  readonly contentType: string
  /** Headers to return on download, by lower-case name, user metadata included. */
  readonly headers: Readonly<Record<string, string>>
  /** ETag to store instead of the MD5 of the body; unquoted. */
  readonly etag?: string
}

const DEFAULT_TYPE = 'application/octet-stream'
const KEPT = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'] as const
const ETAG = /^"?([\w.+/=-]{1,128})"?$/
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

const SMALL_METADATA_BYTES = 2 * 1024
const SMALL_HEADER_BYTES = 8 * 1024

export function readAttributes({ request, target, context }: GatewayExchange): Attributes {
  const { names, quirks, limits } = context
  const given = new Map<string, string>()
  for (const [name, value] of Object.entries(request.headers)) if (typeof value === 'string') given.set(name, value)
  if (quirks.has('query-metadata')) {
    for (const [name, value] of target.parameters) given.set(name.toLowerCase(), headerText(name, value))
  }

  const small = quirks.has('small-metadata')
  if (small && sizeOf(request.rawHeaders) > SMALL_HEADER_BYTES) throw new GatewayError('MetadataTooLarge')

  const metaPrefix = `${names.header}meta-`
  const storageClass = `${names.header}storage-class`
  const headers: Record<string, string> = {}
  let metadataBytes = 0
  for (const [name, value] of given) {
    const isMetadata = name.startsWith(metaPrefix)
    if (isMetadata) metadataBytes += name.length + value.length
    const isKept = isMetadata || name === storageClass || (KEPT as readonly string[]).includes(name)
    if (isKept && NAME.test(name) && (isMetadata || value !== '')) headers[name] = value
  }
  if (metadataBytes > (small ? SMALL_METADATA_BYTES : limits.maxMetadataBytes)) {
    throw new GatewayError('MetadataTooLarge')
  }

  const contentType = given.get('content-type') || DEFAULT_TYPE
  const etag = quirks.has('no-upload-etag') ? undefined : readEtag(given.get(`${names.header}etag`), names.header)
  return { contentType, headers, ...(etag !== undefined && { etag }) }
}

function readEtag(text: string | undefined, header: string): string | undefined {
  if (text === undefined) return undefined
  const etag = ETAG.exec(text)?.[1]
  if (etag === undefined) throw new GatewayError('InvalidHeader', { value: `${header}etag` })
  return etag
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
export function wantsRecord({ request, context: { names, features } }: GatewayExchange): boolean {
  return request.headers[`${names.header}with-record`] !== undefined && features.has('object-records')
}

/** The record of the object and the fence of its last write, for the owner of the bucket. */
export function recordHeaders({ context: { names } }: GatewayExchange, { row, record }: OpenedObject): HeaderList {
  return [
    ...[`${names.header}fence`, String(row.fence)],
    ...(record === undefined ? [] : [`${names.header}record`, record]),
  ]
}

function sizeOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

// Go writes these into a header unchanged, and replaces line ends by spaces (net/http, `headerNewlineToSpace`).
// biome-ignore lint/suspicious/noControlCharactersInRegex: the class is made of control characters
const RAW_CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/

/**
 * Returns the last path element of `key` if it breaks the header in which public gateways send it. Returns undefined if
 * it does not, or if the client overrides that header.
 */
export function breaksHeader({ context, target }: GatewayExchange, key: Buffer): string | undefined {
  if (!context.quirks.has('raw-disposition') || target.parameters.has('response-content-disposition')) return undefined
  const name = key.subarray(key.lastIndexOf('/') + 1).toString('latin1')
  return RAW_CONTROL.test(name) ? name : undefined
}

/** Sends a response head that strict clients cannot parse. */
export function sendBrokenHeader({ response }: GatewayExchange, name: string): void {
  const disposition = `attachment; filename="${name.replace(/[\r\n]/g, ' ')}"`
  const head = `HTTP/1.1 200 OK\r\nContent-Disposition: ${disposition}\r\nConnection: close\r\n\r\n`
  response.socket?.end(head, 'latin1')
}
