import type { IncomingHttpHeaders } from 'node:http'
import type { BrandNames } from './brand.js'
import type { GatewayFeatures, GatewayObject, StoredHeaders, UploadAttributes } from './gateway.js'
import { isTime } from './time.js'

/** User metadata by which an upload to a gateway without ETags is recognised again; never shown to clients. */
export const REVISION_NAME = 'dealgate-rev'

/** Stamp of folder objects on gateways that keep them as directories: they hold no bytes, so there is but one version. */
export const MARKER_STAMP = 'marker'

/** Type of an object that was stored without one, as S3 gives it. */
export const DEFAULT_TYPE = 'binary/octet-stream'

/** Most user metadata public gateways take, names with prefix and values, bytes (MinIO cmd/generic-handlers.go). */
const MAX_METADATA_BYTES = 2048

const STORED_NAMES = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'expires',
] as const

/** One entry of a listing or the headers of one answer, made comparable. */
export interface VersionFacts {
  readonly key: string
  readonly lastModified: string
  readonly size: number
  readonly generation: string | undefined
}

/**
 * The generation, where every way to look at an object tells it; else time and size, which all of them tell alike.
 * Listings tell generations on gateways with pagedListing; without objectHead they are the only way to look.
 */
export function stampOf(features: GatewayFeatures, facts: VersionFacts): string {
  if (facts.key.endsWith('/') && !features.anyKey) return MARKER_STAMP
  if (features.pagedListing && facts.generation !== undefined) return facts.generation
  return `${facts.lastModified}/${facts.size}`
}

/** Headers of an upload, without those of the transport. */
export function uploadHeaders(
  names: BrandNames,
  features: GatewayFeatures,
  attributes: UploadAttributes,
  revision: string | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (attributes.contentType !== undefined) headers['content-type'] = headerText(attributes.contentType)
  for (const name of STORED_NAMES) {
    const value = attributes.headers[name]
    if (value !== undefined) headers[name] = headerText(value)
  }
  if (features.objectHead && attributes.etag !== undefined) headers[names.header('etag')] = attributes.etag
  return { ...headers, ...metadataHeaders(names, attributes.metadata, revision) }
}

function metadataHeaders(
  names: BrandNames,
  metadata: Readonly<Record<string, string>>,
  revision: string | undefined,
): Record<string, string> {
  const own = Object.entries(metadata).map(([name, value]) => [names.metaPrefix + name, headerText(value)] as const)
  if (revision === undefined) return Object.fromEntries(own)
  const all = [...own, [names.metaPrefix + REVISION_NAME, revision] as const]
  const bytes = all.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  // The client's metadata is in our own record anyway; the mark is what ties that record to these bytes.
  return Object.fromEntries(bytes > MAX_METADATA_BYTES ? all.slice(-1) : all)
}

/** What the headers of a download or HEAD tell beside the bytes. */
export interface HeaderFacts {
  readonly contentType: string
  readonly headers: StoredHeaders
  readonly metadata: Record<string, string>
  /** REVISION_NAME's value, if it was one of our uploads. */
  readonly revision: string | undefined
}

/** `forced`: the gateway puts its own Content-Disposition and Cache-Control in place of the object's; those are left out. */
export function headerFacts(names: BrandNames, answer: IncomingHttpHeaders, key: string, forced: boolean): HeaderFacts {
  const headers: StoredHeaders = {}
  for (const name of STORED_NAMES) {
    const value = answer[name]
    if (typeof value === 'string' && !(forced && isForced(name, value, key))) headers[name] = value
  }
  const metadata: Record<string, string> = {}
  for (const [name, value] of Object.entries(answer)) {
    if (name.startsWith(names.metaPrefix) && typeof value === 'string')
      metadata[name.slice(names.metaPrefix.length)] = value
  }
  const { [REVISION_NAME]: revision, ...shown } = metadata
  return { contentType: answer['content-type'] ?? DEFAULT_TYPE, headers, metadata: shown, revision }
}

/** Everything a gateway with objectHead tells in headers; undefined when these are not the headers of an object. */
export function factsFromHeaders(
  names: BrandNames,
  features: GatewayFeatures,
  answer: IncomingHttpHeaders,
  key: string,
  size: number,
): GatewayObject | undefined {
  const generation = single(answer[names.header('generation')])
  const lastModified = single(answer[names.header('last-modified')])
  if (generation === undefined || !isTime(lastModified)) return undefined
  const { contentType, headers, metadata } = headerFacts(names, answer, key, false)
  const etag = unquoted(single(answer.etag))
  return {
    key,
    size,
    lastModified,
    contentType,
    stamp: stampOf(features, { key, generation, lastModified, size }),
    ...(etag === undefined ? {} : { etag }),
    headers,
    metadata,
    ...(answer[names.header('storage-state')] === 'cold' ? { cold: true as const } : {}),
  }
}

export function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

export function unquoted(etag: string | undefined): string | undefined {
  return etag?.replace(/^"(.*)"$/, '$1')
}

function isForced(name: (typeof STORED_NAMES)[number], value: string, key: string): boolean {
  if (name === 'cache-control') return value === 'no-store'
  if (name !== 'content-disposition') return false
  const last = key.slice(key.lastIndexOf('/') + 1)
  return [last, headerText(last), encodeURIComponent(last)].some((file) => value === `attachment; filename="${file}"`)
}

/** Header values are bytes, one per character: text beyond latin-1 goes as UTF-8, which is what comes back. */
function headerText(text: string): string {
  return /[^\0-\xff]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}
