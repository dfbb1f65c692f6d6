import type { MaybePromise } from '../../../common/maybe-promise.js'
import { type Connection, listed, recent, statements, tableOf } from '../../store/database.js'
import {
  type BucketNumbers,
  COUNT,
  FOLD,
  type Miscounted,
  miscounted,
  NUMBERS,
  RECOUNT,
  type Tally,
  usageIn,
} from './bucket-numbers.js'

export interface BucketRow {
  /** Unique; never reused, not even for a bucket of the same name. */
  readonly id: number
  readonly name: string
  /** RFC 3339, nanoseconds. */
  readonly created: string
  /** When an entry at the root of the bucket was last added or removed; kept only where `KeyRules` keep it. */
  readonly changed: string
  /** Id of the account that made it. */
  readonly owner: number
  /** Null: it was never enabled. */
  readonly versioning: 'Enabled' | 'Suspended' | null
  /** The retention of new objects in JSON; null: the bucket has no object lock. */
  readonly lockRule: string | null
  /** Most bytes and objects that it may have; null: no bound. */
  readonly quotaBytes: number | null
  readonly quotaObjects: number | null
}

/** A bucket as a transaction with locks has found it. */
export interface LockedBucket extends BucketRow {
  /** 1 when a deal in the making may read bodies of the bucket. */
  readonly held: number
}

const BUCKET = `
  id, name, created, changed, owner, versioning, lock_rule AS "lockRule",
  quota_bytes AS "quotaBytes", quota_objects AS "quotaObjects"
`

const FIND = `SELECT ${BUCKET} FROM buckets WHERE name = ?`

const LOCK = `
  SELECT ${BUCKET}, EXISTS (SELECT 1 FROM holds WHERE bucket = buckets.id) AS held
  FROM buckets WHERE name = ?
`

/** With a lock of the row, until the end of the transaction: nothing can remove the bucket, or be alone in it. */
const shared = { sqlite: LOCK, postgres: `${LOCK} FOR KEY SHARE OF buckets` }

/** With a lock of the row for which all with other locks must have ended. */
const alone = { sqlite: LOCK, postgres: `${LOCK} FOR UPDATE OF buckets` }

/** The buckets of an owner with these names, in the order of the texts. Parameters: names in JSON, owner. */
const described = (connection: Connection) => `
  SELECT b.name, b.versioning, b.lock_rule AS "lockRule", b.quota_bytes AS "quotaBytes",
    b.quota_objects AS "quotaObjects", n.*,
    (SELECT coalesce(sum(bytes), 0) FROM retained WHERE bucket = b.id) AS "retainedBytes"
  FROM buckets AS b JOIN (${NUMBERS[connection.engine]}) AS n ON n.id = b.id
  WHERE b.owner = ?2 AND b.name IN ${listed(connection)} ORDER BY b.name
`

/** A bucket with its settings and numbers. */
interface DescribedBucket
  extends BucketNumbers,
    Pick<BucketRow, 'name' | 'versioning' | 'lockRule' | 'quotaBytes' | 'quotaObjects'> {
  /** Bytes of removed objects that a pending deal reads: they count for the quota. */
  readonly retainedBytes: number
}

/** The table of buckets. Call writing methods inside a transaction. */
export class Buckets {
  readonly #sql
  /** Absent where `count` leaves nothing to fold. */
  readonly #fold

  constructor(connection: Connection) {
    const { engine } = connection
    this.#fold = engine === 'postgres' ? connection.prepare(FOLD) : undefined
    this.#sql = statements(connection, {
      find: FIND,
      shared: shared[engine],
      alone: alone[engine],
      ofOwner: `SELECT ${BUCKET} FROM buckets WHERE owner = ? ORDER BY name`,
      add: 'INSERT INTO buckets (name, created, changed, owner) VALUES (?, ?, ?, ?)',
      remove: 'DELETE FROM buckets WHERE id = ?',
      removePolicies: 'DELETE FROM policies WHERE bucket = ?',
      removeFences: 'DELETE FROM removed WHERE bucket = ?',
      removeChanges: 'DELETE FROM bucket_changes WHERE bucket = ?',
      any: 'SELECT 1 FROM objects WHERE bucket = ?1 UNION ALL SELECT 1 FROM versions WHERE bucket = ?1 LIMIT 1',
      count: COUNT[engine],
      setVersioning: 'UPDATE buckets SET versioning = ? WHERE id = ?',
      setLockRule: 'UPDATE buckets SET lock_rule = ? WHERE id = ?',
      touch: 'UPDATE buckets SET changed = ? WHERE id = ?',
      usage: usageIn(connection),
      described: described(connection),
      miscounted: miscounted(connection),
      recount: RECOUNT,
    })
  }

  find(name: string): MaybePromise<BucketRow | undefined> {
    return isText(name) ? recent<BucketRow>(this.#sql.find, name) : undefined
  }

  /**
   * Like `find`, for a transaction with locks: keeps the bucket as long as that lasts.
   * @param alone true for work on any of its keys, which must be alone in the bucket; false for keys that are locked
   */
  async lock(name: string, alone: boolean): Promise<LockedBucket | undefined> {
    if (!isText(name)) return undefined
    return (alone ? this.#sql.alone : this.#sql.shared).get<LockedBucket>(name)
  }

  of(owner: number): Promise<BucketRow[]> {
    return this.#sql.ofOwner.all<BucketRow>(owner)
  }

  async add(name: string, created: string, owner: number): Promise<void> {
    await this.#sql.add.run(name, created, created, owner)
  }

  /** Removes the bucket with its policies and the fences of its removed keys. */
  async remove(id: number): Promise<void> {
    await this.#sql.removePolicies.run(id)
    await this.#sql.removeFences.run(id)
    await this.#sql.removeChanges.run(id)
    await this.#sql.remove.run(id)
  }

  async setVersioning(id: number, status: 'Enabled' | 'Suspended'): Promise<void> {
    await this.#sql.setVersioning.run(status, id)
  }

  async setLockRule(id: number, rule: string): Promise<void> {
    await this.#sql.setLockRule.run(rule, id)
  }

  /** True when it has no version of any object, and no delete marker. */
  async isEmpty(id: number): Promise<boolean> {
    return (await this.#sql.any.get(id)) === undefined
  }

  /** Adds a change to the numbers of the bucket. */
  async count(id: number, change: Tally): Promise<void> {
    const { objects, bytes, currentObjects, currentBytes, markers, versionBytes } = change
    await this.#sql.count.run(objects, bytes, currentObjects, currentBytes, markers, versionBytes, id)
  }

  /** To be done now and then: else what `count` leaves in PostgreSQL grows without end. */
  async fold(id: number): Promise<void> {
    await this.#fold?.run(id)
  }

  async touch(id: number, changed: string): Promise<void> {
    await this.#sql.touch.run(changed, id)
  }

  async usage(owner: number): Promise<Pick<BucketNumbers, 'objects' | 'bytes'>> {
    return (await this.#sql.usage.get<BucketNumbers>(owner)) as BucketNumbers
  }

  /** Counts all rows, and resolves with the buckets whose numbers differ from that. */
  miscounted(): Promise<Miscounted[]> {
    return this.#sql.miscounted.all<Miscounted>()
  }

  /** Sets the numbers to those of a count. The transaction must be alone in the bucket. */
  async recount(id: number): Promise<void> {
    await this.#sql.removeChanges.run(id)
    await this.#sql.recount.run(id)
  }

  /** Those of these names that are the owner's. */
  describe(owner: number, names: readonly string[]): Promise<DescribedBucket[]> {
    return this.#sql.described.all<DescribedBucket>(JSON.stringify(names.filter(isText)), owner)
  }
}

/**
 * The lock of transactions with locks that change bodies in a bucket, which share it, and of those that must be alone
 * in the bucket. Locks of its row would let those that share them pass by one that waits to be alone.
 */
export function bucketLock({ id }: Pick<BucketRow, 'id'>): string {
  return String(id)
}

/** False for a text that no column holds: PostgreSQL refuses NUL. */
export function isText(text: string): boolean {
  return !text.includes('\0')
}

/** Access of anonymous callers to the objects under a prefix. */
export type Policy = 'readonly' | 'writeonly' | 'readwrite'

interface PolicyEntry {
  readonly prefix: string
  readonly policy: Policy
}

export class Policies extends tableOf({
  of: 'SELECT prefix, policy FROM policies WHERE bucket = ? ORDER BY prefix',
  put: 'INSERT INTO policies (bucket, prefix, policy) VALUES (?, ?, ?) ON CONFLICT (bucket, prefix) DO UPDATE SET policy = excluded.policy',
  remove: 'DELETE FROM policies WHERE bucket = ? AND prefix = ?',
}) {
  async of(bucket: number): Promise<PolicyEntry[]> {
    const rows = await this.sql.of.all<{ prefix: Uint8Array; policy: Policy }>(bucket)
    return rows.map((row) => ({ prefix: Buffer.from(row.prefix).toString(), policy: row.policy }))
  }

  async put(bucket: number, { prefix, policy }: PolicyEntry): Promise<void> {
    await this.sql.put.run(bucket, Buffer.from(prefix), policy)
  }

  async remove(bucket: number, prefix: string): Promise<void> {
    await this.sql.remove.run(bucket, Buffer.from(prefix))
  }
}
