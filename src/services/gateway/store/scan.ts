import type { ListedObject, Objects } from './objects.js'

export interface ScanQuery {
  readonly bucket: number
  readonly prefix: Buffer
  /** Empty: keys are not grouped. */
  readonly delimiter: Buffer
  /** Entries come strictly after this name. If it is a common prefix of this query, all beneath it is passed over. Empty: from the start. */
  readonly after: Buffer
  /** Entries at most, >= 1. */
  readonly limit: number
}

export type ScanEntry =
  | { readonly kind: 'object'; readonly object: ListedObject }
  /** `first` is the first object beneath it. */
  | { readonly kind: 'prefix'; readonly prefix: Buffer; readonly first: ListedObject }

export interface ScanPage {
  /** In byte order of key or prefix, each prefix once. */
  readonly entries: ScanEntry[]
  readonly truncated: boolean
  /** What it cost. */
  readonly rowsRead: number
}

/** No UTF-8 text has this byte, so it is above every key. */
const ABOVE_ALL = Buffer.from([0xff])
const SMALLEST_BATCH = 4
const FIRST_GROUPED_BATCH = 128

/**
 * One page of a listing. Once a common prefix is known, the scan goes on behind everything beneath it, so a page costs a few rows for each of its
 * entries, however many objects the prefixes hide.
 */
export function scan(objects: Objects, query: ScanQuery): ScanPage {
  const { bucket, prefix, delimiter, after, limit } = query
  const end = above(prefix)
  const entries: ScanEntry[] = []
  let from = start(query)
  let hiddenUpTo: Buffer | undefined
  let batch = delimiter.length === 0 ? limit + 1 : Math.min(limit + 1, FIRST_GROUPED_BATCH)
  let rowsRead = 0

  while (from.compare(end) < 0) {
    const rows = objects.page(bucket, from, end, batch)
    rowsRead += rows.length
    let hidden = 0
    for (const object of rows) {
      if (hiddenUpTo !== undefined && object.key.compare(hiddenUpTo) < 0) {
        hidden++
        continue
      }
      const common = commonPrefix(object.key, prefix, delimiter)
      if (common !== undefined) hiddenUpTo = above(common)
      // A prefix that sorts before `after` was told of before, or passed over.
      if (common !== undefined && common.compare(after) <= 0) continue
      if (entries.length === limit) return { entries, truncated: true, rowsRead }
      entries.push(
        common === undefined ? { kind: 'object', object } : { kind: 'prefix', prefix: common, first: object },
      )
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < batch) break
    from = hiddenUpTo !== undefined && last.key.compare(hiddenUpTo) < 0 ? hiddenUpTo : justAfter(last.key)
    batch = nextBatch(batch, hidden, limit + 1 - entries.length)
  }
  return { entries, truncated: false, rowsRead }
}

function start({ prefix, delimiter, after }: ScanQuery): Buffer {
  if (after.length === 0 || after.compare(prefix) < 0) return prefix
  const common = commonPrefix(after, prefix, delimiter)
  return common?.equals(after) ? above(after) : justAfter(after)
}

/** The part of `key` up to and with the first delimiter behind the prefix, if there is one. */
function commonPrefix(key: Buffer, prefix: Buffer, delimiter: Buffer): Buffer | undefined {
  if (delimiter.length === 0 || key.compare(prefix, 0, prefix.length, 0, Math.min(prefix.length, key.length)) !== 0) {
    return undefined
  }
  const at = key.indexOf(delimiter, prefix.length)
  return at < 0 ? undefined : key.subarray(0, at + delimiter.length)
}

/** Small batches while most rows turn out to be hidden, large ones while none are. */
function nextBatch(batch: number, hidden: number, wanted: number): number {
  const next = hidden > batch / 2 ? batch >> 1 : batch << 1
  return Math.max(SMALLEST_BATCH, Math.min(next, wanted))
}

/** The least text above everything that starts with `prefix`. UTF-8 has no byte 0xff, so the last byte can be raised. */
export function above(prefix: Buffer): Buffer {
  const last = prefix.at(-1)
  if (last === undefined) return ABOVE_ALL
  const next = Buffer.from(prefix)
  next[next.length - 1] = last + 1
  return next
}

/** The least text above `key`. */
export function justAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.alloc(1)])
}
