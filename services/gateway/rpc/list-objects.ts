import { z } from 'zod'
import { isAllowed } from '../access.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import { mustBeBucket } from '../store/key-rules.js'
import { type ListedObject, toObjectEntry } from '../store/object-row.js'
import { above, bounds, justAfter, type ScanEntry, type ScanQuery, scan } from '../store/scan.js'
import {
  type AnyResult,
  defineMethod,
  optionalText,
  type RpcCall,
  type RpcResult,
  StreamedResult,
  text,
  UI_VERSION,
  WrittenResult,
} from './method.js'

/** Entries per page; also the upper bound of `maxKeys`. */
const PAGE = 1000

const params = z.object({
  bucketName: text,
  prefix: text,
  marker: optionalText,
  maxKeys: z.int().min(1).max(PAGE).optional(),
  delimiter: optionalText,
})

/**
 * Lists one whole level. With optional params (feature `paged-listing`) it lists at most `maxKeys` entries behind
 * `marker`, grouped by `delimiter` ('' for no grouping), in byte order.
 */
export const listObjects = defineMethod({
  name: 'web.ListObjects',
  access: 'policy',
  params,
  async run(given, call) {
    const { context } = call
    const { bucketName, prefix } = given
    const { buckets, policies } = context.db.read
    const found = await buckets.find(bucketName)
    const may = (action: 'list' | 'put', name: string): Promise<boolean> =>
      isAllowed(policies, call.identity, action, found, name)
    const readable = await may('list', prefix)
    const writable = await may('put', `${prefix}/`)
    if (!readable && !writable) {
      throw new GatewayError(call.identity === 'anonymous' ? 'Authentication' : 'NotPermittedInListing')
    }
    const bucket = mustBe(call, bucketName, found)
    if (!readable || (context.quirks.has('strict-keys') && listStrictly(bucketName, prefix) === 'nothing')) {
      return { objects: context.quirks.has('null-arrays') ? null : [], writable }
    }
    const { marker, maxKeys, delimiter } = context.quirks.has('one-level-listing')
      ? ({} as Partial<typeof given>)
      : given
    const query: ScanQuery = {
      bucket: bucket.id,
      prefix: Buffer.from(prefix),
      delimiter: Buffer.from(delimiter ?? '/'),
      after: Buffer.from(marker ?? ''),
      limit: maxKeys ?? PAGE,
    }
    await refuseIfMistaken(call, bucket, query)
    const versioned = bucket.versioning !== null && context.features.has('versions') ? { versioned: true } : {}
    const more = { writable, ...versioned }
    if (maxKeys !== undefined) return onePage(call, query, more)
    const paged = marker !== undefined || delimiter !== undefined
    return new StreamedResult(wholeLevel(call, query, { ...more, ...(paged && { isTruncated: false }) }))
  },
})

function mustBe({ context }: RpcCall, bucket: string, found: BucketRow | undefined): BucketRow {
  if (found === undefined && context.quirks.has('missing-bucket-texts')) {
    throw new GatewayError('NoSuchBucketInListing', { bucket })
  }
  return mustBeBucket(context, bucket, found)
}

/**
 * When a listing is empty, public gateways on one folder look for an object of that name, and take `fs.json` for its
 * metadata (MinIO cmd/fs-v1.go).
 */
async function refuseIfMistaken({ context }: RpcCall, { id, name }: BucketRow, query: ScanQuery): Promise<void> {
  if (!context.quirks.has('fs-json-listings')) return
  const { objects } = context.db.read
  if ((await objects.find(id, Buffer.from('fs.json'))) === undefined) return
  const { entries } = await scan(objects, { ...query, limit: 2 })
  if ((await toListEntries(context, query, entries)).length > 0) return
  throw new GatewayError('PrefixIsFolder', { bucket: name, value: query.prefix.toString() })
}

async function onePage({ context }: RpcCall, query: ScanQuery, more: RpcResult): Promise<AnyResult> {
  // Where keys are not grouped and no quirk changes them, the index itself writes the entries.
  if (query.delimiter.length === 0 && context.quirks.size === 0) return writtenPage(context, query, more)
  const { entries, truncated } = await scan(context.db.read.objects, query)
  const objects = await toListEntries(context, query, entries)
  const last = entries.at(-1)
  return {
    objects: objects.length === 0 && context.quirks.has('null-arrays') ? null : objects,
    ...more,
    isTruncated: truncated,
    ...(truncated && last !== undefined && { nextMarker: nameOf(last).toString() }),
  }
}

async function writtenPage({ db }: GatewayContext, query: ScanQuery, members: RpcResult): Promise<WrittenResult> {
  const { from, to } = bounds(query)
  const { bucket, limit } = query
  // One more than wanted shows whether there are more.
  const rows = await db.read.objects.pageAsJson(bucket, from, to, limit + 1)
  const isTruncated = rows.length > limit
  if (isTruncated) rows.pop()
  const last = isTruncated ? (JSON.parse(rows.at(-1) ?? '') as { name: string }) : undefined
  const more = JSON.stringify({ ...members, isTruncated, nextMarker: last?.name })
  return new WrittenResult(`"objects":[${rows.join(',')}],${more.slice(1, -1)}`)
}

/** Streams page by page, so that memory does not grow with the number of entries. */
async function* wholeLevel({ context }: RpcCall, query: ScanQuery, more: RpcResult): AsyncGenerator<string> {
  const rest = JSON.stringify({ ...more, uiVersion: UI_VERSION }).slice(1)
  let after = query.after
  let written = 0
  for (;;) {
    const { entries, truncated } = await scan(context.db.read.objects, { ...query, after })
    const texts = (await toListEntries(context, query, entries)).map((entry) => JSON.stringify(entry))
    if (texts.length > 0) yield (written === 0 ? '{"objects":[' : ',') + texts.join(',')
    written += texts.length
    const last = entries.at(-1)
    if (!truncated || last === undefined) break
    after = nameOf(last)
  }
  const none = context.quirks.has('null-arrays') ? 'null' : '[]'
  yield written === 0 ? `{"objects":${none},${rest}` : `],${rest}`
}

/** Go's zero time, which public gateways return for a prefix. */
const YEAR_ONE = '0001-01-01T00:00:00Z'
const SLASH = 0x2f

function nameOf(entry: ScanEntry): Buffer {
  return entry.kind === 'object' ? entry.object.key : entry.prefix
}

/** Converts a page of a scan to members of `objects`. */
async function toListEntries(context: GatewayContext, query: ScanQuery, page: readonly ScanEntry[]): Promise<object[]> {
  const { quirks } = context
  const entries = await foldersShown(context, query, quirks.has('root-name-listings') ? mistaken(query, page) : page)
  const bare = quirks.has('year-one-prefixes')
  const toEntry = (entry: ScanEntry): object =>
    entry.kind === 'object' ? toEntryOf(entry.object, bare) : toPrefixEntry(entry.prefix, entry.first, bare)
  if (!quirks.has('unsorted-listing')) return entries.map(toEntry)
  return [
    ...entries.filter(({ kind }) => kind === 'object').map(toEntry),
    ...entries.filter(({ kind }) => kind === 'prefix').map(toEntry),
  ]
}

function toEntryOf(object: ListedObject, bare: boolean): object {
  if (!bare) return toObjectEntry(object)
  const { key, modified: lastModified, size, contentType } = object
  return { name: key.toString(), lastModified, size, contentType }
}

/** The time of a prefix is that of the first object beneath it. */
function toPrefixEntry(prefix: Buffer, first: ListedObject, bare: boolean): object {
  const spec = { name: prefix.toString(), size: 0, contentType: '' }
  return bare ? { ...spec, lastModified: YEAR_ONE } : { ...spec, lastModified: first.modified, isPrefix: true }
}

/** Part of a bucket's root, with the mistake of gateways on several drives. */
function mistaken({ prefix }: ScanQuery, page: readonly ScanEntry[]): ScanEntry[] {
  if (prefix.length === 0 || prefix.includes(SLASH)) return [...page]
  return page.flatMap((entry) =>
    entry.kind === 'prefix'
      ? []
      : { kind: 'prefix', prefix: Buffer.concat([entry.object.key, Buffer.from('/')]), first: entry.object },
  )
}

/** The entries as a gateway with the quirk about folder objects shows them. */
async function foldersShown(
  context: GatewayContext,
  query: ScanQuery,
  page: readonly ScanEntry[],
): Promise<readonly ScanEntry[]> {
  const { quirks } = context
  if (quirks.has('erasure-folders')) return page
  if (quirks.has('folder-prefixes')) return page.filter((entry) => !isFolderListed(entry, query))
  return quirks.has('strict-keys') ? asFolders(context, query, page) : page
}

/** True for the folder object that is the listed level itself. */
function isFolderListed(entry: ScanEntry, { prefix }: ScanQuery): boolean {
  return entry.kind === 'object' && entry.object.key.at(-1) === SLASH && entry.object.key.equals(prefix)
}

/**
 * An empty folder object shows as an object; one with objects beneath it, as a prefix only; the listed folder itself,
 * not at all.
 */
async function asFolders(
  { db }: GatewayContext,
  query: ScanQuery,
  page: readonly ScanEntry[],
): Promise<readonly ScanEntry[]> {
  const shown: ScanEntry[] = []
  for (const entry of page.filter((one) => !isFolderListed(one, query))) {
    const isFolder = entry.kind === 'prefix' && entry.first.key.equals(entry.prefix)
    const isEmpty =
      isFolder && !(await db.read.objects.anyWithin(query.bucket, justAfter(entry.prefix), above(entry.prefix)))
    shown.push(isEmpty ? { kind: 'object', object: entry.first } : entry)
  }
  return shown
}

/**
 * How a file system treats a prefix (MinIO cmd/object-api-input-checks.go). Throws GatewayError when the prefix is not
 * a path.
 */
function listStrictly(bucket: string, prefix: string): 'nothing' | 'level' {
  if (prefix === '/') return 'nothing'
  const bad = prefix
    .split('/')
    .some((element, index, all) => element === '.' || element === '..' || (element === '' && index < all.length - 1))
  if (bad || prefix.includes('\\')) throw new GatewayError('InvalidListPrefix', { bucket, value: prefix })
  return 'level'
}
