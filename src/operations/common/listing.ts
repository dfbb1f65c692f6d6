import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { StorageClasses } from '../../registry/storage-class.js'
import type { Query } from '../../request/query.js'
import type { StoreEntry, StorePage } from '../../store/store.js'
import { element } from '../../xml.js'
import { restoreStatus } from './archive-report.js'
import { quoted } from './etags.js'
import { pageSize } from './numbers.js'
import { presenceOf } from './presence.js'
import { xmlTime } from './times.js'

/** What the listings have in common. */
export interface ListRequest {
  readonly prefix: string
  readonly delimiter: string
  readonly maxKeys: number
  /** Writes a name as the client asked for it: as it is, or percent-encoded. */
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

/** Everything percent-encoded but unreserved characters and `/`, so that decoders which take `+` for a space agree with those that do not. */
export function urlEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll('%2F', '/')
}

/** A page; with maxKeys 0 an empty one, of a bucket that exists. */
export async function listPage(context: Context, bucket: string, list: ListRequest, after: string): Promise<StorePage> {
  if (list.maxKeys === 0) {
    // Also asks whether this prefix may be listed at all.
    await context.store.list(bucket, { prefix: list.prefix, delimiter: list.delimiter, after: '', limit: 1 })
    return { entries: [], truncated: false }
  }
  return context.store.list(bucket, { prefix: list.prefix, delimiter: list.delimiter, after, limit: list.maxKeys })
}

export function nameOf(entry: StoreEntry): string {
  return entry.kind === 'object' ? entry.key : entry.prefix
}

/** What is told of each object beside what the listing says of it. */
export interface EntryReport {
  /** `<Owner>`, or nothing. */
  readonly owner: string
  readonly storageClasses: StorageClasses
  /** `<RestoreStatus>` was asked for. */
  readonly restores: boolean
}

/** `<Contents>` (or `<Version>`) elements, then `<CommonPrefixes>`. */
export function entryElements(
  entries: readonly StoreEntry[],
  list: ListRequest,
  { owner, storageClasses, restores }: EntryReport,
  tag: 'Contents' | 'Version' = 'Contents',
): string {
  let objects = ''
  let prefixes = ''
  for (const entry of entries) {
    if (entry.kind === 'prefix')
      prefixes += `<CommonPrefixes>${element('Prefix', list.name(entry.prefix))}</CommonPrefixes>`
    else {
      const presence = presenceOf(entry, storageClasses)
      const restore = restores ? restoreStatus(presence) : ''
      const version = tag === 'Version' ? '<VersionId>null</VersionId><IsLatest>true</IsLatest>' : ''
      objects += `<${tag}>${element('Key', list.name(entry.key))}${version}<LastModified>${xmlTime(entry.lastModified)}</LastModified>${element('ETag', quoted(entry.etag))}<Size>${entry.size}</Size>${element('StorageClass', presence.storageClass)}${owner}${restore}</${tag}>`
    }
  }
  return objects + prefixes
}
