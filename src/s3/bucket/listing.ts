import { S3Error } from '../../common/errors/s3-error.js'
import { xmlTime } from '../../common/times.js'
import { element, escapeXml } from '../../common/xml/xml.js'
import type { StoreEntry, StorePage } from '../../objects/store.js'
import type { StorageClasses } from '../../plugins/forms/storage-class.js'
import { pageSize } from '../../request/numbers.js'
import type { Query } from '../../request/query.js'
import type { Context } from '../../server/context.js'
import type { ObjectChecksum } from '../../state/state.js'
import { restoreStatus } from '../reading/archive-report.js'
import { presenceOf } from '../storage-class/presence.js'

/** Parameters that all listings share. */
export interface ListRequest {
  readonly prefix: string
  readonly delimiter: string
  readonly maxKeys: number
  /** Encodes a name as the client requested: unchanged or percent-encoded. */
  readonly name: (text: string) => string
  readonly encodingType: string | undefined
}

/** Throws InvalidArgument. An empty delimiter means none. */
export function readListRequest(query: Query, maxName = 'max-keys'): ListRequest {
  const encodingType = query.get('encoding-type') || undefined
  if (encodingType !== undefined && encodingType !== 'url') {
    throw new S3Error('InvalidArgument', {
      message: 'Invalid Encoding Method specified in Request',
      fields: { ArgumentName: 'encoding-type', ArgumentValue: encodingType },
    })
  }
  return {
    prefix: query.get('prefix') ?? '',
    delimiter: query.get('delimiter') ?? '',
    maxKeys: pageSize(maxName, query.get(maxName)),
    name: encodingType === 'url' ? urlEncoded : (text) => text,
    encodingType,
  }
}

/**
 * Percent-encodes everything except unreserved characters and `/`, so that decoders agree whether or not they read `+`
 * as a space.
 */
export function urlEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll('%2F', '/')
}

/** Lists a page. With maxKeys 0 it is empty, but the bucket must exist. */
export async function listPage(context: Context, bucket: string, list: ListRequest, after: string): Promise<StorePage> {
  if (list.maxKeys === 0) {
    // This call also checks whether the caller may list this prefix.
    await context.store.list(bucket, { prefix: list.prefix, delimiter: list.delimiter, after: '', limit: 1 })
    return { entries: [], truncated: false }
  }
  return context.store.list(bucket, { prefix: list.prefix, delimiter: list.delimiter, after, limit: list.maxKeys })
}

export function nameOf(entry: StoreEntry): string {
  return entry.kind === 'object' ? entry.key : entry.prefix
}

/** Facts about each object in addition to its entry. */
export interface EntryReport {
  /** `<Owner>`, or ''. */
  readonly owner: string
  readonly storageClasses: StorageClasses
  /** Whether the client requested `<RestoreStatus>`. */
  readonly restores: boolean
}

/** Elements in one part of a document. */
const PART_ELEMENTS = 50

/** Returns the `<Contents>` (or `<Version>`) elements, then `<CommonPrefixes>`, as parts of a document. */
export function entryElements(
  entries: readonly StoreEntry[],
  list: ListRequest,
  report: EntryReport,
  tag: 'Contents' | 'Version' = 'Contents',
): string[] {
  const parts: string[] = []
  let part = ''
  let prefixes = ''
  let inPart = 0
  for (const entry of entries) {
    if (entry.kind === 'prefix') {
      prefixes += `<CommonPrefixes>${element('Prefix', list.name(entry.prefix))}</CommonPrefixes>`
      continue
    }
    part += objectElement(entry, list, report, tag)
    if (++inPart < PART_ELEMENTS) continue
    parts.push(part)
    part = ''
    inPart = 0
  }
  parts.push(part, prefixes)
  return parts
}

function objectElement(
  entry: StoreEntry & { readonly kind: 'object' },
  list: ListRequest,
  { owner, storageClasses, restores }: EntryReport,
  tag: 'Contents' | 'Version',
): string {
  const presence = presenceOf(entry, storageClasses)
  const version = tag === 'Version' ? '<VersionId>null</VersionId><IsLatest>true</IsLatest>' : ''
  const restore = restores ? restoreStatus(presence) : ''
  return `<${tag}><Key>${escapeXml(list.name(entry.key))}</Key>${version}<LastModified>${xmlTime(entry.lastModified)}</LastModified><ETag>&quot;${escapeXml(entry.etag)}&quot;</ETag>${checksumElements(entry.checksum)}<Size>${entry.size}</Size><StorageClass>${presence.storageClass}</StorageClass>${owner}${restore}</${tag}>`
}

/** Returns the elements that describe the checksum that HEAD can return; '' for an object without one. */
function checksumElements(checksum: ObjectChecksum | undefined): string {
  return checksum ? element('ChecksumAlgorithm', checksum.algorithm) + element('ChecksumType', checksum.type) : ''
}
