import { setImmediate as othersTurn } from 'node:timers/promises'
import { nanosecondsOf } from '../../clock.js'
import { above, commonPrefix, justAfter } from './scan.js'
import { firstIdAt, type ListedVersion, NULL_VERSION, type VersionPosition, type Versions } from './versions.js'

interface VersionScanQuery {
  readonly bucket: number
  readonly prefix: Buffer
  /** Empty: do not group keys. */
  readonly delimiter: Buffer
  /** Entries come after this key or common prefix. Empty: from the start. */
  readonly after: Buffer
  /** Entries of that key come after this version, by the id of its order, or `null`; '': the key is skipped. */
  readonly afterId: string
  /** Maximum number of entries, >= 1. */
  readonly limit: number
  /** Entries state their locks. */
  readonly withLocks: boolean
}

export type VersionScanEntry =
  | { readonly kind: 'version'; readonly row: ListedVersion; readonly isLatest: boolean }
  | { readonly kind: 'prefix'; readonly prefix: Buffer }

interface VersionScanPage {
  readonly entries: readonly VersionScanEntry[]
  readonly truncated: boolean
}

/** Rows of the first page where keys are grouped: the next ones are larger, until a prefix is skipped. */
const FEW_ROWS = 2

/** Pages that are read in one turn of the event loop: SQLite answers at once, and the thread has others to serve. */
const PAGES_PER_TURN = 20

/**
 * Reads one page of all versions, in byte order of the keys and from the newest version of a key to the oldest. Costs
 * one index search per common prefix, however many versions that hides.
 */
export async function scanVersions(versions: Versions, query: VersionScanQuery): Promise<VersionScanPage> {
  const { bucket, prefix, delimiter, limit, withLocks } = query
  const to = above(prefix)
  const entries: VersionScanEntry[] = []
  let position: VersionPosition | undefined = await start(versions, query)
  const resumed = position.id === '' ? undefined : position.key
  let seen: Buffer | undefined
  const first = delimiter.length === 0 ? limit + 1 : FEW_ROWS
  let size = first
  for (let pages = 1; position !== undefined && entries.length <= limit; pages++) {
    if (pages % PAGES_PER_TURN === 0) await othersTurn()
    const from: VersionPosition = position
    const rows = await versions.page(bucket, from, to, size, withLocks)
    let skipped = false
    position = undefined
    for (const row of rows) {
      // The page has the current object also when its place is before the position.
      if (row.id === '' && row.key.equals(from.key) && orderOf(row) <= from.id) {
        seen = row.key
        position = from
        continue
      }
      const common = commonPrefix(row.key, prefix, delimiter)
      if (common !== undefined) {
        entries.push({ kind: 'prefix', prefix: common })
        position = { key: above(common), id: '' }
        skipped = true
        break
      }
      const isFirst = seen === undefined || !seen.equals(row.key)
      // Newer ones may have been removed since the page before.
      const mayBeOlder = isFirst && row.id !== '' && resumed?.equals(row.key)
      const isLatest = mayBeOlder ? (await versions.newestId(bucket, row.key)) === row.id : isFirst || row.id === ''
      entries.push({ kind: 'version', row, isLatest })
      seen = row.key
      position = { key: row.key, id: orderOf(row) }
    }
    if (rows.length < size && !skipped) position = undefined
    size = skipped ? first : Math.min(size * 2, limit + 1)
  }
  return { entries: entries.slice(0, limit), truncated: entries.length > limit }
}

async function start(versions: Versions, query: VersionScanQuery): Promise<VersionPosition> {
  const { bucket, prefix, delimiter, after, afterId } = query
  if (after.length === 0 || after.compare(prefix) < 0) return { key: prefix, id: '' }
  const common = commonPrefix(after, prefix, delimiter)
  if (common !== undefined) return { key: above(common), id: '' }
  if (afterId === '') return { key: justAfter(after), id: '' }
  if (afterId !== NULL_VERSION) return { key: after, id: afterId }
  // Where it is gone, the key begins anew: no version must be passed over.
  const current = (await versions.page(bucket, { key: after, id: '' }, justAfter(after), 1))[0]
  if (current?.id === '' && current.version === null) return { key: after, id: orderOf(current) }
  return { key: after, id: (await versions.find(bucket, after, NULL_VERSION))?.id ?? '' }
}

/** The id by which the row has its place among the versions of its key, also after it has become another row. */
export function orderOf({ id, version, modified }: ListedVersion): string {
  if (id !== '') return id
  return version ?? `${firstIdAt(nanosecondsOf(modified))}${LAST_DIGITS}`
}

const LAST_DIGITS = 'f'.repeat(16)
