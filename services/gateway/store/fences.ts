import type { Clock } from '../../clock.js'
import { tableOf } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { type BucketRow, isText } from './buckets.js'

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

/** A removal that was the last write to its key when it took place. */
export interface Removal extends LastWrite {
  /** What it was answered in a bucket with versions, in JSON. */
  readonly answer: string | null
}

/** What is known of the removal of a key. */
export interface KnownRemoval {
  /** Undefined: none is recorded. */
  readonly found: Removal | undefined
  /** No fence that was forgotten among the keys of the account is higher. */
  readonly floor: number
}

/** Microseconds since 1970 in the year 2112; the bound leaves room for the fences of later writes. */
export const MAX_FENCE = 2 ** 52

/**
 * Most removed keys of an account whose fences are kept. A floor covers all others: no forgotten fence was above it.
 */
const MAX_REMOVED = 100_000

/** Number of removals in the buckets of an account between two checks of that bound. */
const LOOK_EVERY = 1000

/** The fences of keys whose last write was a removal. Call writing methods inside a transaction. */
export class RemovedKeys extends tableOf({
  find: 'SELECT fence, write_id AS "writeId", answer FROM removed WHERE bucket = ? AND key = ?',
  remember: `
    INSERT INTO removed (bucket, key, fence, write_id, answer) VALUES (?, ?, ?, ?, ?) ON CONFLICT (bucket, key)
    DO UPDATE SET fence = excluded.fence, write_id = excluded.write_id, answer = excluded.answer
  `,
  forget: 'DELETE FROM removed WHERE bucket = ? AND key = ?',
  count: `SELECT count(*) AS count FROM removed WHERE ${OF_OWNER}`,
  nth: `SELECT fence FROM removed WHERE ${OF_OWNER} ORDER BY fence LIMIT 1 OFFSET ?`,
  prune: `DELETE FROM removed WHERE ${OF_OWNER} AND fence <= ?`,
  floor: 'SELECT fence FROM fence_floor WHERE id = ?',
  setFloor: `
    INSERT INTO fence_floor (id, fence) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET fence = excluded.fence
    WHERE excluded.fence > fence_floor.fence
  `,
}) {
  find(bucket: number, key: Buffer): Promise<Removal | undefined> {
    return this.sql.find.get<Removal>(bucket, key)
  }

  async remember(bucket: number, key: Buffer, { fence, writeId, answer }: Removal): Promise<void> {
    await this.sql.remember.run(bucket, key, fence, writeId, answer)
  }

  async forget(bucket: number, key: Buffer): Promise<void> {
    await this.sql.forget.run(bucket, key)
  }

  /** No fence that has been forgotten in the buckets of this account is higher. */
  async floorOf(owner: number): Promise<number> {
    return (await this.sql.floor.get<{ fence: number }>(owner))?.fence ?? 0
  }

  /** Forgets the lowest fences of an account, approximately down to `most`. */
  async forgetOldest(owner: number, most: number): Promise<void> {
    const { count = 0 } = (await this.sql.count.get<{ count: number }>(owner)) ?? {}
    if (count <= most) return
    const { fence = 0 } = (await this.sql.nth.get<{ fence: number }>(owner, count - most - 1)) ?? {}
    await this.sql.setFloor.run(owner, fence)
    await this.sql.prune.run(owner, fence)
  }
}

interface FenceTables {
  readonly removed: RemovedKeys
}

/**
 * Decides whether a write may still take effect. The fences of objects are in their rows, those of removed keys in a
 * table. Call methods inside the transaction of the change. See docs/consistency.md.
 */
export class Fences {
  readonly #clock: Clock
  /** Number of removals by account, at this process: the bound is approximate in any case. */
  readonly #remembered = new Map<number, number>()
  readonly #most: number

  /** @param most number of removed keys to remember for each account, approximately */
  constructor(clock: Clock, most = MAX_REMOVED) {
    this.#clock = clock
    this.#most = most
  }

  /**
   * Returns the last write to a key that has no object. If none is recorded, it may have been as late as the floor, and
   * not before the creation of the bucket.
   */
  async ofRemoved({ removed }: FenceTables, bucket: BucketRow, key: Buffer, known?: KnownRemoval): Promise<Removal> {
    const { found, floor } = known ?? (await look(removed, bucket, key))
    return found ?? { fence: Math.max(floor, microseconds(bucket.created)), writeId: null, answer: null }
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

  async remember({ removed }: FenceTables, { id, owner }: BucketRow, key: Buffer, write: Removal): Promise<void> {
    await removed.remember(id, key, write)
    const count = (this.#remembered.get(owner) ?? 0) + 1
    this.#remembered.set(owner, count)
    if (count % LOOK_EVERY === 0) await removed.forgetOldest(owner, this.#most)
  }
}

export function isRepeated(order: WriteOrder | undefined, last: LastWrite): boolean {
  return order !== undefined && order.fence === last.fence && order.writeId === last.writeId
}

async function look(removed: RemovedKeys, { id, owner }: BucketRow, key: Buffer): Promise<KnownRemoval> {
  const [found, floor] = await Promise.all([removed.find(id, key), removed.floorOf(owner)])
  return { found, floor }
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
export class StoreIds extends tableOf({
  mark: 'SELECT mark FROM state_epochs WHERE account = ? AND epoch = ?',
  // `folder:`: a store in a data folder, which clients with other stores neither share nor replace.
  other:
    "SELECT 1 FROM state_epochs WHERE account = ? AND epoch <> ? AND mark < ? AND epoch NOT LIKE 'folder:%' LIMIT 1",
  add: `
    INSERT INTO state_epochs (account, epoch, mark) VALUES (?1, ?2, ?3)
    ON CONFLICT (account, epoch) DO UPDATE SET mark = excluded.mark WHERE excluded.mark > state_epochs.mark
  `,
}) {
  /** What is known of this id. The mark is the highest one that was kept with it; -1: none. */
  async find(
    account: number,
    storeId: string,
  ): Promise<{ readonly known: boolean; readonly replaced: boolean; readonly mark: number }> {
    const row = isText(storeId) ? await this.sql.mark.get<{ mark: number }>(account, storeId) : undefined
    const { mark = -1 } = row ?? {}
    const replaced = mark === REPLACED
    return { known: mark >= 0 && !replaced, replaced, mark }
  }

  /** True when an id other than this one is known, and has not been replaced. */
  async hasOther(account: number, storeId: string): Promise<boolean> {
    const id = isText(storeId) ? storeId : ''
    return (await this.sql.other.get(account, id, REPLACED)) !== undefined
  }

  /** @param over ids that this one replaces */
  async keep(account: number, storeId: string, over: readonly string[], mark: number): Promise<void> {
    for (const former of over) await this.sql.add.run(account, former, REPLACED)
    await this.sql.add.run(account, storeId, mark)
  }
}
