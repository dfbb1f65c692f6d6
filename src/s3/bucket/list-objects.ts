import { S3Error } from '../../../common/errors/s3-error.js'
import { pageSize, type Query } from '../../../common/query.js'
import { xmlTime } from '../../../common/time.js'
import { documentBytes, element, escapeXml } from '../../../common/xml.js'
import { listValue } from '../../access/values/query-values.js'
import type { Context, StorageClasses } from '../../api/context.js'
import type { ObjectChecksum } from '../../api/object-checksum.js'
import type { StoreEntry, StorePage } from '../../api/store.js'
import { xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { asksForRestores, presenceOf, restoreStatus } from '../object/storage-class.js'
import { bucketOwnerElement } from './owner.js'

/** With this parameter of Ceph, clients permit any order of the keys: https://docs.ceph.com/en/latest/radosgw/s3/bucketops/ */
const UNORDERED = 'allow-unordered'

export const listObjects = defineOperation({
  name: 'ListObjects',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html',
  access: 'anonymous',
  action: 's3:ListBucket',
  on: {
    method: 'GET',
    resource: 'bucket',
    params: ['prefix', 'delimiter', 'marker', 'max-keys', 'encoding-type', 'fetch-owner', UNORDERED],
  },
  async run(request, context) {
    const list = readListRequest(request.query)
    refuseUnorderedFolders(request.query, list)
    const restores = asksForRestores(request.headers)
    const marker = request.query.get('marker') ?? ''
    const page = await listPage(context, request.bucket, list, marker)
    const last = page.entries.at(-1)
    return xml(
      documentBytes('ListBucketResult', [
        element('Name', request.bucket),
        element('Prefix', list.name(list.prefix)),
        element('Marker', list.name(marker)),
        element('MaxKeys', list.maxKeys),
        list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
        element('EncodingType', list.encodingType),
        element('IsTruncated', page.truncated),
        // S3 sends NextMarker only with a delimiter. Sending it always serves clients that rely on it (rclone issue
        // 1653).
        page.truncated && last ? element('NextMarker', list.name(nameOf(last))) : '',
        ...entryElements(page.entries, list, {
          ...context.plugins,
          owner: await bucketOwnerElement(context, request.bucket),
          restores,
        }),
      ]),
    )
  },
})

export const listObjectsV2 = defineOperation({
  name: 'ListObjectsV2',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html',
  access: 'anonymous',
  action: 's3:ListBucket',
  on: {
    method: 'GET',
    resource: 'bucket',
    query: ['list-type=2'],
    params: [
      ...['prefix', 'delimiter', 'max-keys', 'encoding-type', 'continuation-token', 'start-after', 'fetch-owner'],
      UNORDERED,
    ],
  },
  async run(request, context) {
    const list = readListRequest(request.query)
    refuseUnorderedFolders(request.query, list)
    const restores = asksForRestores(request.headers)
    const token = request.query.get('continuation-token')
    const startAfter = request.query.get('start-after')
    // A token marks where the next page begins; start-after applies only to the first page. Clients send an empty token
    // for the first page.
    const after = token ? decodeToken(token, 'continuation-token') : (startAfter ?? '')
    const page = await listPage(context, request.bucket, list, after)
    const last = page.entries.at(-1)
    return xml(
      documentBytes('ListBucketResult', [
        element('Name', request.bucket),
        element('Prefix', list.name(list.prefix)),
        element('StartAfter', startAfter === undefined ? undefined : list.name(startAfter)),
        element('ContinuationToken', token),
        page.truncated && last ? element('NextContinuationToken', encodeToken(nameOf(last))) : '',
        element('KeyCount', page.entries.length),
        element('MaxKeys', list.maxKeys),
        list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
        element('EncodingType', list.encodingType),
        element('IsTruncated', page.truncated),
        ...entryElements(page.entries, list, {
          ...context.plugins,
          owner: request.query.get('fetch-owner') === 'true' ? await bucketOwnerElement(context, request.bucket) : '',
          restores,
        }),
      ]),
    )
  },
})

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
    prefix: listValue(query, 'prefix') ?? '',
    delimiter: listValue(query, 'delimiter') ?? '',
    maxKeys: pageSize(maxName, query.get(maxName)),
    name: encodingType === 'url' ? urlEncoded : (text) => text,
    encodingType,
  }
}

/** Throws InvalidArgument, as Ceph does, for an unordered listing with a delimiter. */
function refuseUnorderedFolders(query: Query, { delimiter }: ListRequest): void {
  if (query.get(UNORDERED) !== 'true' || delimiter === '') return
  throw new S3Error('InvalidArgument', {
    message: `${UNORDERED} cannot be combined with a delimiter.`,
    fields: { ArgumentName: UNORDERED },
  })
}

/**
 * Percent-encodes everything except unreserved characters and `/`, so that decoders agree whether or not they read `+`
 * as a space.
 */
function urlEncoded(text: string): string {
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

type ListedPrefix = Extract<StoreEntry, { readonly kind: 'prefix' }>

export type ListedObject = Omit<Extract<StoreEntry, { readonly kind: 'object' }>, 'kind'>

function entryElements(entries: readonly StoreEntry[], list: ListRequest, report: EntryReport): string[] {
  return elementsOf(entries, list, (entry) => `<Contents>${objectElements(entry, list, report)}</Contents>`)
}

/**
 * Returns the elements of the entries of a page, then `<CommonPrefixes>`, as parts of a document.
 * @param one returns the element of an entry
 */
export function elementsOf<T extends { readonly kind: string }>(
  entries: readonly (T | ListedPrefix)[],
  list: ListRequest,
  one: (entry: Exclude<T, ListedPrefix>) => string,
): string[] {
  const parts: string[] = []
  let part = ''
  let prefixes = ''
  let inPart = 0
  for (const entry of entries) {
    if (isPrefix(entry)) {
      prefixes += `<CommonPrefixes>${element('Prefix', list.name(entry.prefix))}</CommonPrefixes>`
      continue
    }
    part += one(entry as Exclude<T, ListedPrefix>)
    if (++inPart < PART_ELEMENTS) continue
    parts.push(part)
    part = ''
    inPart = 0
  }
  parts.push(part, prefixes)
  return parts
}

function isPrefix(entry: { readonly kind: string }): entry is ListedPrefix {
  return entry.kind === 'prefix'
}

/** @param version elements that follow the key */
export function objectElements(
  entry: ListedObject,
  list: ListRequest,
  { owner, storageClasses, restores }: EntryReport,
  version = '',
): string {
  const presence = presenceOf(entry, storageClasses)
  const restore = restores ? restoreStatus(presence) : ''
  return `<Key>${escapeXml(list.name(entry.key))}</Key>${version}<LastModified>${xmlTime(entry.lastModified)}</LastModified><ETag>&quot;${escapeXml(entry.etag)}&quot;</ETag>${checksumElements(entry.checksum)}<Size>${entry.size}</Size><StorageClass>${presence.storageClass}</StorageClass>${owner}${restore}`
}

/** Returns the elements that describe the checksum that HEAD can return; '' for an object without one. */
function checksumElements(checksum: ObjectChecksum | undefined): string {
  return checksum ? element('ChecksumAlgorithm', checksum.algorithm) + element('ChecksumType', checksum.type) : ''
}

/** Version of our tokens: others are refused instead of misread. */
const MARK = '1'

/**
 * Returns an opaque continuation token, which marks where the next page begins. It contains only a name that the client
 * has seen.
 */
export function encodeToken(after: string): string {
  return MARK + Buffer.from(after).toString('base64url')
}

/** Decodes a token. Throws InvalidArgument for any other text. */
export function decodeToken(token: string, parameter: string): string {
  const bytes = Buffer.from(token.slice(1), 'base64url')
  const after = bytes.toString('utf8')
  if (token.startsWith(MARK) && token.length > 1 && encodeToken(after) === token) return after
  throw new S3Error('InvalidArgument', {
    message: 'The continuation token provided is incorrect',
    fields: { ArgumentName: parameter },
  })
}
