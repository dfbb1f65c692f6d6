import { z } from 'zod'
import { isAllowed, refusalOf } from '../access.js'
import type { ReadContext } from '../context.js'
import type { BucketRow } from '../store/buckets.js'
import { mustBeBucket } from '../store/key-rules.js'
import { type ListedObject, toObjectEntry } from '../store/object-row.js'
import { bounds, type ScanEntry, type ScanQuery, scan } from '../store/scan.js'
import {
  type AnyResult,
  defineRead,
  optionalText,
  type RpcCall,
  type RpcMethod,
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

type ListParams = z.output<typeof params>

/** How the entries of a listing are written. */
export interface ListForm {
  /** Changes what is asked for. Undefined: the answer is an empty list. Throws GatewayError. */
  asked(given: ListParams): ListParams | undefined
  /** Throws GatewayError for a listing that is not to be answered. */
  begin(context: ReadContext, bucket: BucketRow, query: ScanQuery): Promise<void>
  /** The members of `objects` for a page of a scan. */
  entries(context: ReadContext, query: ScanQuery, page: readonly ScanEntry[]): Promise<object[]>
  /** The member `objects` of a list without entries. */
  readonly empty: readonly [] | null
  /** True: the index may write the entries itself, where keys are not grouped. */
  readonly asIndexed: boolean
}

const plainForm: ListForm = {
  asked: (given) => given,
  begin: async () => {},
  entries: async (_, __, page) => page.map(toEntry),
  empty: [],
  asIndexed: true,
}

/**
 * Lists one whole level. With optional params (feature `paged-listing`) it lists at most `maxKeys` entries behind
 * `marker`, grouped by `delimiter` ('' for no grouping), in byte order.
 */
export const listing = (form: ListForm): RpcMethod<ReadContext> =>
  defineRead({
    name: 'web.ListObjects',
    access: 'policy',
    params,
    async run(given, call) {
      const { context } = call
      const { bucketName, prefix } = given
      const { buckets, policies } = context.db.read
      const found = await buckets.find(bucketName)
      const may = (action: 'list' | 'put', name: string) => isAllowed(policies, call.identity, action, found, name)
      const readable = await may('list', prefix)
      const writable = await may('put', `${prefix}/`)
      if (!readable && !writable) throw refusalOf(call.identity)
      const bucket = mustBeBucket(context, bucketName, found)
      const asked = readable ? form.asked(given) : undefined
      if (asked === undefined) return { objects: form.empty, writable }
      const { marker, maxKeys, delimiter } = asked
      const query: ScanQuery = {
        bucket: bucket.id,
        prefix: Buffer.from(prefix),
        delimiter: Buffer.from(delimiter ?? '/'),
        after: Buffer.from(marker ?? ''),
        limit: maxKeys ?? PAGE,
      }
      await form.begin(context, bucket, query)
      const versioned = bucket.versioning !== null && context.features.has('versions') ? { versioned: true } : {}
      const more = { writable, ...versioned }
      if (maxKeys !== undefined) return onePage(call, form, query, more)
      const paged = marker !== undefined || delimiter !== undefined
      return new StreamedResult(wholeLevel(call, form, query, { ...more, ...(paged && { isTruncated: false }) }))
    },
  })

export const listObjects = listing(plainForm)

async function onePage(
  { context }: RpcCall<ReadContext>,
  form: ListForm,
  query: ScanQuery,
  more: RpcResult,
): Promise<AnyResult> {
  if (query.delimiter.length === 0 && form.asIndexed) return writtenPage(context, query, more)
  const { entries, truncated } = await scan(context.db.read.objects, query)
  const objects = await form.entries(context, query, entries)
  const last = entries.at(-1)
  return {
    objects: objects.length === 0 ? form.empty : objects,
    ...more,
    isTruncated: truncated,
    ...(truncated && last !== undefined && { nextMarker: nameOf(last).toString() }),
  }
}

async function writtenPage({ db }: ReadContext, query: ScanQuery, members: RpcResult): Promise<WrittenResult> {
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
async function* wholeLevel(
  { context }: RpcCall<ReadContext>,
  form: ListForm,
  query: ScanQuery,
  more: RpcResult,
): AsyncGenerator<string> {
  const rest = JSON.stringify({ ...more, uiVersion: UI_VERSION }).slice(1)
  let after = query.after
  let written = 0
  for (;;) {
    const { entries, truncated } = await scan(context.db.read.objects, { ...query, after })
    const texts = (await form.entries(context, query, entries)).map((entry) => JSON.stringify(entry))
    if (texts.length > 0) yield (written === 0 ? '{"objects":[' : ',') + texts.join(',')
    written += texts.length
    const last = entries.at(-1)
    if (!truncated || last === undefined) break
    after = nameOf(last)
  }
  yield written === 0 ? `{"objects":${JSON.stringify(form.empty)},${rest}` : `],${rest}`
}

function nameOf(entry: ScanEntry): Buffer {
  return entry.kind === 'object' ? entry.object.key : entry.prefix
}

function toEntry(entry: ScanEntry): object {
  return entry.kind === 'object' ? toObjectEntry(entry.object) : toPrefixEntry(entry.prefix, entry.first)
}

/** The time of a prefix is that of the first object beneath it. */
function toPrefixEntry(prefix: Buffer, { modified: lastModified }: ListedObject): object {
  return { name: prefix.toString(), size: 0, contentType: '', lastModified, isPrefix: true }
}
