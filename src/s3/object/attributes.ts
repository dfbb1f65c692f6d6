import type { IncomingHttpHeaders } from 'node:http'
import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  parseChecksumAlgorithm,
} from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { headerText, REDIRECT, readRedirect, STORAGE_CLASS } from '../../access/values/header-values.js'
import type { Context, Registered } from '../../api/context.js'
import type { StoredHeaders } from '../../api/gateway.js'
import type { ObjectEventName } from '../../api/hooks.js'
import type { Limits } from '../../api/limits.js'
import type { S3Request } from '../../api/request.js'
import type { ServerFacts } from '../../api/server-facts.js'
import type { Cause, PutRequest } from '../../api/store.js'
import { storedContentEncoding } from '../../http/body/declared-digests.js'
import { isLabel } from '../../plugins/storage-class.js'

export { headerText, REDIRECT }

const META = 'x-amz-meta-'

/** The default of S3; the defaults of gateways differ. */
const DEFAULT_TYPE = 'binary/octet-stream'

/** Rules for user metadata. */
interface MetadataRules {
  readonly plugins: Pick<Registered, 'outputMetadata'>
  /** Limit of the total size of names and values, bytes. */
  readonly limits: Pick<Limits, 'maxMetadataBytes'>
  readonly server: Pick<ServerFacts, 'storageClassLabels'>
}

/**
 * Reads the attributes of the object from the headers of a write. Throws MetadataTooLarge, InvalidStorageClass,
 * InvalidRedirectLocation.
 */
export function readAttributes(headers: IncomingHttpHeaders, rules: MetadataRules): PutRequest['attributes'] {
  return {
    contentType: headers['content-type'] || DEFAULT_TYPE,
    headers: storedHeaders(headers),
    metadata: readMetadata(headers, rules),
    ...labelOf(headers, rules),
  }
}

/**
 * Returns the class that a write asks for if it only names a price. Throws InvalidStorageClass where the server refuses
 * these classes.
 */
export function labelOf(headers: IncomingHttpHeaders, { server }: Pick<MetadataRules, 'server'>): { label?: string } {
  const asked = headerText(headers, STORAGE_CLASS)
  if (asked === undefined || !isLabel(asked)) return {}
  if (server.storageClassLabels === 'keep') return { label: asked }
  throw new S3Error('InvalidStorageClass', {
    message: `The storage class ${asked} is not available: this server accepts no classes that only name a price.`,
    fields: { StorageClassRequested: asked },
  })
}

/** Removes the metadata that plugins add to replies; a copy would otherwise freeze its values. */
export function ownMetadata(
  metadata: Readonly<Record<string, string>>,
  { plugins: { outputMetadata } }: Pick<MetadataRules, 'plugins'>,
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
  return Object.assign(stored, redirectOf(headers))
}

/** Throws InvalidRedirectLocation. */
export function redirectOf(headers: IncomingHttpHeaders): Pick<StoredHeaders, typeof REDIRECT> {
  const location = headerText(headers, REDIRECT)
  return location === undefined ? {} : { [REDIRECT]: readRedirect(location) }
}

function readMetadata(
  headers: IncomingHttpHeaders,
  { limits: { maxMetadataBytes: max }, plugins: { outputMetadata } }: MetadataRules,
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

/** Reads the checksum algorithm in a header; undefined if absent. Throws InvalidRequest for an unknown one. */
export function checksumAlgorithmHeader(headers: IncomingHttpHeaders, name: string): ChecksumAlgorithm | undefined {
  const value = headerText(headers, name)
  if (value === undefined || value === '') return undefined
  const algorithm = parseChecksumAlgorithm(value)
  if (algorithm) return algorithm
  throw new S3Error('InvalidRequest', {
    message: `${name} is ${value}: it must be one of ${checksumAlgorithms.join(', ')}.`,
  })
}

/** Returns the cause of an event for hooks. */
export function causeOf(
  name: ObjectEventName,
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
  context: Context,
): Cause {
  const accessKeyId = context.caller?.identity.accessKeyId ?? ''
  return { name, origin: { requestId: request.id, accessKeyId, remoteAddress: request.remoteAddress } }
}
