import { z } from 'zod'
import { isAllowed } from '../../access/access.js'
import { mustFindBucket } from '../../bucket-name.js'
import type { GatewayContext } from '../../context.js'
import { GatewayError } from '../../errors.js'
import type { BucketRow } from '../../store/buckets.js'
import { bounds, type ScanQuery, scan } from '../../store/scan.js'
import {
  type AnyResult,
  defineMethod,
  type RpcCall,
  type RpcResult,
  StreamedResult,
  UI_VERSION,
  WrittenResult,
} from '../method.js'
import { optionalText, text } from '../params.js'
import { nameOf, toListEntries } from './list-entries.js'
import { listStrictly } from './list-strictly.js'

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
  run(given, call) {
    const { context } = call
    const { bucketName, prefix } = given
    const found = context.buckets.find(bucketName)
    const may = (action: 'list' | 'put', name: string): boolean =>
      isAllowed(context.policies, call.identity, action, found, name)
    const readable = may('list', prefix)
    const writable = may('put', `${prefix}/`)
    if (!readable && !writable) {
      throw new GatewayError(call.identity === 'anonymous' ? 'Authentication' : 'NotPermittedInListing')
    }
    const bucket = mustFind(call, bucketName)
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
    refuseIfMistaken(call, bucket, query)
    if (maxKeys !== undefined) return onePage(call, query, writable)
    const paged = marker !== undefined || delimiter !== undefined
    return new StreamedResult(wholeLevel(call, query, { writable, ...(paged && { isTruncated: false }) }))
  },
})

function mustFind({ context }: RpcCall, bucket: string): BucketRow {
  if (context.quirks.has('missing-bucket-texts') && context.buckets.find(bucket) === undefined) {
    throw new GatewayError('NoSuchBucketInListing', { bucket })
  }
  return mustFindBucket(context, bucket)
}

/**
 * When a listing is empty, public gateways on one folder look for an object of that name, and take `fs.json` for its
 * metadata (MinIO cmd/fs-v1.go).
 */
function refuseIfMistaken({ context }: RpcCall, { id, name }: BucketRow, query: ScanQuery): void {
  if (!context.quirks.has('fs-json-listings') || !context.objects.find(id, Buffer.from('fs.json'))) return
  const { entries } = scan(context.objects, { ...query, limit: 2 })
  if (toListEntries(context, query, entries).length > 0) return
  throw new GatewayError('PrefixIsFolder', { bucket: name, value: query.prefix.toString() })
}

function onePage({ context }: RpcCall, query: ScanQuery, writable: boolean): AnyResult {
  // Where keys are not grouped and no quirk changes them, the index itself writes the entries.
  if (query.delimiter.length === 0 && context.quirks.size === 0) return writtenPage(context, query, writable)
  const { entries, truncated } = scan(context.objects, query)
  const objects = toListEntries(context, query, entries)
  const last = entries.at(-1)
  return {
    objects: objects.length === 0 && context.quirks.has('null-arrays') ? null : objects,
    writable,
    isTruncated: truncated,
    ...(truncated && last !== undefined && { nextMarker: nameOf(last).toString() }),
  }
}

function writtenPage({ objects }: GatewayContext, query: ScanQuery, writable: boolean): WrittenResult {
  const { from, to } = bounds(query)
  const { bucket, limit } = query
  // One more than wanted shows whether there are more.
  const rows = objects.pageAsJson(bucket, from, to, limit + 1)
  const isTruncated = rows.length > limit
  if (isTruncated) rows.pop()
  const last = isTruncated ? (JSON.parse(rows.at(-1) ?? '') as { name: string }) : undefined
  const more = JSON.stringify({ writable, isTruncated, nextMarker: last?.name })
  return new WrittenResult(`"objects":[${rows.join(',')}],${more.slice(1, -1)}`)
}

/** Streams page by page, so that memory does not grow with the number of entries. */
async function* wholeLevel({ context }: RpcCall, query: ScanQuery, more: RpcResult): AsyncGenerator<string> {
  const rest = JSON.stringify({ ...more, uiVersion: UI_VERSION }).slice(1)
  let after = query.after
  let written = 0
  for (;;) {
    const { entries, truncated } = scan(context.objects, { ...query, after })
    const texts = toListEntries(context, query, entries).map((entry) => JSON.stringify(entry))
    if (texts.length > 0) yield (written === 0 ? '{"objects":[' : ',') + texts.join(',')
    written += texts.length
    const last = entries.at(-1)
    if (!truncated || last === undefined) break
    after = nameOf(last)
  }
  const none = context.quirks.has('null-arrays') ? 'null' : '[]'
  yield written === 0 ? `{"objects":${none},${rest}` : `],${rest}`
}
