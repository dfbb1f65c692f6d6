import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { StoredHeaders, UploadAttributes } from '../../gateway/gateway.js'
import type { Limits } from '../../limits.js'
import { storedContentEncoding } from '../../request/content-encoding.js'

const META = 'x-amz-meta-'

/** S3's own: gateways differ in theirs. */
const DEFAULT_TYPE = 'binary/octet-stream'

/** What is kept of user metadata. */
export interface MetadataRules extends Pick<Context, 'outputMetadata'> {
  /** Bytes of names and values together. */
  readonly limits: Pick<Limits, 'maxMetadataBytes'>
}

/** What a write says of the object beside its bytes. Throws MetadataTooLarge. */
export function readAttributes(headers: IncomingHttpHeaders, rules: MetadataRules): Omit<UploadAttributes, 'etag'> {
  return {
    contentType: headers['content-type'] || DEFAULT_TYPE,
    headers: storedHeaders(headers),
    metadata: readMetadata(headers, rules),
  }
}

/** Without what plugins tell of objects: whoever copies an object with what he was told of it would freeze it. */
export function ownMetadata(
  metadata: Readonly<Record<string, string>>,
  { outputMetadata }: Pick<Context, 'outputMetadata'>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !outputMetadata(name)))
}

function storedHeaders(headers: IncomingHttpHeaders): StoredHeaders {
  const stored: StoredHeaders = {}
  for (const name of ['cache-control', 'content-disposition', 'content-language', 'expires'] as const) {
    const value = headers[name]
    if (value !== undefined && value !== '') stored[name] = value
  }
  const encoding = storedContentEncoding(headers['content-encoding'])
  if (encoding) stored['content-encoding'] = encoding
  return stored
}

function readMetadata(
  headers: IncomingHttpHeaders,
  { limits: { maxMetadataBytes: max }, outputMetadata }: MetadataRules,
): Record<string, string> {
  const metadata: [string, string][] = []
  let size = 0
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(META) || value === undefined) continue
    if (outputMetadata(name.slice(META.length))) continue
    const text = Array.isArray(value) ? value.join(',') : value
    size += name.length - META.length + text.length
    metadata.push([name.slice(META.length), text])
  }
  if (size > max) throw new S3Error('MetadataTooLarge', { fields: { Size: size, MaxSizeAllowed: max } })
  return Object.fromEntries(metadata)
}
