import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { headerText } from '../http/header-text.js'

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

export function readAttributes({ request, target, context }: Exchange): Attributes {
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

function sizeOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}
