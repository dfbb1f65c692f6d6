import type { Clock } from '../../clock.js'
import { type Database, statements } from '../../database.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from './buckets.js'

/** The place of a write among all writes to its key. */
export interface WriteOrder {
  /** A write with a fence below that of the key's last write is refused as too late. 1 to MAX_FENCE. */
  readonly fence: number
  /** Identifies the write when it arrives twice. */
  readonly writeId: string
  /** The generation that the object must have; null: no object may exist; absent: no condition. */
  readonly expected?: string | null
}

const OF_OWNER = 'bucket IN (SELECT id FROM buckets WHERE owner = ?)'

/** The last write to a key. */
export interface LastWrite {
  readonly fence: number
  readonly writeId: string | null
}

/** Microseconds since 1970 in the year 2112; the bound leaves room for the fences of later writes. */
export const MAX_FENCE = 2 ** 52

/**
 * Most removed keys of an account whose fences are kept. A floor covers all others: no forgotten fence was above it.
 */
const MAX_REMOVED = 100_000

/** Number of removals in the buckets of an account between two checks of that bound. */
const LOOK_EVERY = 1000

/**
 * Keeps the fences of removed keys, and decides whether a write may still take effect; the fences of objects are in
 * their rows. Call methods inside the transaction of the change. See docs/consistency.md.
 */
export class Fences {
  readonly #clock: Clock
  readonly #sql
  /** Number of removals by account. */
  readonly #remembered = new Map<number, number>()
  readonly #most: number

  /** @param most number of removed keys to remember for each account, approximately */
  constructor(db: Database, clock: Clock, most = MAX_REMOVED) {
    this.#clock = clock
    this.#most = most
    this.#sql = statements(db, {
      removed: 'SELECT fence, write_id AS writeId FROM removed WHERE bucket = ? AND key = ?',
      remember: 'INSERT OR REPLACE INTO removed (bucket, key, fence, write_id) VALUES (?, ?, ?, ?)',
      forget: 'DELETE FROM removed WHERE bucket = ? AND key = ?',
      count: `SELECT count(*) AS count FROM removed WHERE ${OF_OWNER}`,
      nth: `SELECT fence FROM removed WHERE ${OF_OWNER} ORDER BY fence LIMIT 1 OFFSET ?`,
      prune: `DELETE FROM removed WHERE ${OF_OWNER} AND fence <= ?`,
      floor: 'SELECT fence FROM fence_floor WHERE id = ?',
      setFloor:
        'INSERT INTO fence_floor (id, fence) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET fence = max(fence, ?2)',
    })
  }

  /**
   * Returns the last write to a key that has no object. If none is recorded, it may have been as late as the floor, and
   * not before the creation of the bucket.
   */
  ofRemoved(bucket: BucketRow, key: Buffer): LastWrite {
    const row: LastWrite | undefined = this.#sql.removed.get(bucket.id, key)
    if (row !== undefined) return row
    const floor: { fence: number } | undefined = this.#sql.floor.get(bucket.owner)
    return { fence: Math.max(floor?.fence ?? 0, microseconds(bucket.created)), writeId: null }
  }

  /**
   * Returns the order to record as the key's last write. Throws GatewayError Overtaken or OtherGeneration.
   * @param order absent for a client without fences: its write counts as the last one, whenever it arrives
   * @param generation of the current object
   */
  admit(order: WriteOrder | undefined, last: LastWrite, generation: string | undefined): LastWrite {
    // There is no number above the highest one: a client that uses it has no order, and must not keep all others out
    // for ever.
    const before = last.fence < MAX_FENCE ? last.fence : 0
    if (order === undefined) return { fence: Math.max(before + 1, Number(this.#clock.now() / 1000n)), writeId: null }
    const { fence, writeId, expected } = order
    if (fence <= before) throw new GatewayError('Overtaken', { fence: last.fence })
    if (expected !== undefined && (expected ?? undefined) !== generation) throw new GatewayError('OtherGeneration')
    return { fence, writeId }
  }

  remember({ id, owner }: BucketRow, key: Buffer, { fence, writeId }: LastWrite): void {
    this.#sql.remember.run(id, key, fence, writeId)
    const count = (this.#remembered.get(owner) ?? 0) + 1
    this.#remembered.set(owner, count)
    if (count % LOOK_EVERY === 0) this.#forgetOldest(owner)
  }

  forget(bucket: number, key: Buffer): void {
    this.#sql.forget.run(bucket, key)
  }

  #forgetOldest(owner: number): void {
    const surplus = this.#sql.count.get(owner).count - this.#most
    if (surplus <= 0) return
    const { fence } = this.#sql.nth.get(owner, surplus - 1)
    this.#sql.setFloor.run(owner, fence)
    this.#sql.prune.run(owner, fence)
  }
}

export function isRepeated(order: WriteOrder | undefined, last: LastWrite): boolean {
  return order !== undefined && order.fence === last.fence && order.writeId === last.writeId
}

/** An `rfc3339` text as a fence. */
function microseconds(created: string): number {
  return Date.parse(`${created.slice(0, 23)}Z`) * 1000 + Number(created.slice(23, 26))
}

/** Mark of a store id that another one has replaced: a store with it is older, whatever its own mark. */
const REPLACED = Number.MAX_SAFE_INTEGER

/**
 * The ids of the state stores that the clients of each account have used, in the column `epoch`, each with its highest
 * mark. Call `keep` inside a transaction.
 */
export class StoreIds {
  readonly #mark
  readonly #other
  readonly #add

  constructor(db: Database) {
    this.#mark = db.prepare('SELECT mark FROM state_epochs WHERE account = ? AND epoch = ?')
    // `folder:`: a store in a data folder, which clients with other stores neither share nor replace.
    this.#other = db.prepare(
      "SELECT 1 FROM state_epochs WHERE account = ? AND epoch <> ? AND mark < ? AND epoch NOT LIKE 'folder:%' LIMIT 1",
    )
    this.#add = db.prepare(
      'INSERT INTO state_epochs (account, epoch, mark) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET mark = max(mark, ?3)',
    )
  }

  /** What is known of this id. The mark is the highest one that was kept with it; -1: none. */
  find(
    account: number,
    storeId: string,
  ): { readonly known: boolean; readonly replaced: boolean; readonly mark: number } {
    const mark: number = this.#mark.get(account, storeId)?.mark ?? -1
    const replaced = mark === REPLACED
    return { known: mark >= 0 && !replaced, replaced, mark }
  }

  /** True when an id other than this one is known, and has not been replaced. */
  hasOther(account: number, storeId: string): boolean {
    return this.#other.get(account, storeId, REPLACED) !== undefined
  }

  /** @param over ids that this one replaces */
  keep(account: number, storeId: string, over: readonly string[], mark: number): void {
    for (const former of over) this.#add.run(account, former, REPLACED)
    this.#add.run(account, storeId, mark)
  }
}
