import type { ListedObject } from './object-row.js'
import type { Objects } from './objects.js'

export interface ScanQuery {
  readonly bucket: number
  readonly prefix: Buffer
  /** Empty: do not group keys. */
  readonly delimiter: Buffer
  /**
   * Entries come strictly after this name. If it is a common prefix of this query, all keys beneath it are skipped.
   * Empty: from the start.
   */
  readonly after: Buffer
  /** Maximum number of entries, >= 1. */
  readonly limit: number
}

export type ScanEntry =
  | { readonly kind: 'object'; readonly object: ListedObject }
  /** `first` is the first object beneath it. */
  | { readonly kind: 'prefix'; readonly prefix: Buffer; readonly first: ListedObject }

interface ScanPage {
  /** In byte order of key or prefix; each prefix appears once. */
  readonly entries: ScanEntry[]
  readonly truncated: boolean
}

/** UTF-8 never contains this byte, so it sorts above every key. */
const ABOVE_ALL = Buffer.from([0xff])

/** Reads one page of a listing. Costs one index search per entry, however many objects the prefixes hide. */
export async function scan(objects: Objects, query: ScanQuery): Promise<ScanPage> {
  const { bucket, prefix, delimiter, limit } = query
  const { from, to } = bounds(query)
  // One more row than wanted shows whether there are more.
  const rows =
    delimiter.length === 0
      ? await objects.page(bucket, from, to, limit + 1)
      : await objects.groupedPage(bucket, from, to, limit + 1, prefix.length, delimiter)
  const entries = rows.slice(0, limit).map((object): ScanEntry => {
    const common = commonPrefix(object.key, prefix, delimiter)
    return common === undefined ? { kind: 'object', object } : { kind: 'prefix', prefix: common, first: object }
  })
  return { entries, truncated: rows.length > limit }
}

/** The range of the keys that a listing reads: `from` <= key < `to`. */
export function bounds(query: ScanQuery): { readonly from: Buffer; readonly to: Buffer } {
  return { from: start(query), to: above(query.prefix) }
}

/**
 * Returns the lower bound of the first entry behind `after`. If `after` lies beneath a common prefix, the bound is
 * behind all of that prefix, since the prefix itself sorts before `after`.
 */
function start({ prefix, delimiter, after }: ScanQuery): Buffer {
  if (after.length === 0 || after.compare(prefix) < 0) return prefix
  const common = commonPrefix(after, prefix, delimiter)
  return common === undefined ? justAfter(after) : above(common)
}

/** The part of `key` up to and including the first delimiter behind the prefix, if there is one. */
export function commonPrefix(key: Buffer, prefix: Buffer, delimiter: Buffer): Buffer | undefined {
  if (delimiter.length === 0 || !key.subarray(0, prefix.length).equals(prefix)) return undefined
  const at = key.indexOf(delimiter, prefix.length)
  return at < 0 ? undefined : key.subarray(0, at + delimiter.length)
}

/**
 * The lowest byte string above everything that starts with `prefix`. UTF-8 has no byte 0xff, so the last byte can be
 * incremented.
 */
export function above(prefix: Buffer): Buffer {
  const last = prefix.at(-1)
  if (last === undefined) return ABOVE_ALL
  const next = Buffer.from(prefix)
  next[next.length - 1] = last + 1
  return next
}

/** The lowest byte string above `key`. */
export function justAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.alloc(1)])
}
