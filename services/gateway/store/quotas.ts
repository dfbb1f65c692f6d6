import { type Connection, recent, statements } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { contentOf, usageIn } from './bucket-numbers.js'
import type { BucketRow } from './buckets.js'

/** What a bucket may have; null for no bound. */
interface Quota {
  readonly bytes: number | null
  readonly objects: number | null
}

/** What an account may store in all of its buckets. */
export interface AccountQuota extends Quota {
  /** Multipart uploads under way, which the clients of the gateway count. */
  readonly uploads: number | null
}

export const NO_QUOTA: AccountQuota = Object.freeze({ bytes: null, objects: null, uploads: null })

/** Objects in deals alone have no bytes here; removed ones have bytes while a pending deal reads them. */
export interface Usage {
  readonly bytes: number
  readonly objects: number
}

const QUOTA = 'SELECT bytes, objects, uploads FROM quotas WHERE account = ?'

/** Has a row of its own for an account without a quota, too: only what has a row is answered from memory. */
const FIND = 'SELECT bytes, objects, uploads FROM (SELECT 1 AS one) AS one LEFT JOIN quotas ON account = ?'

const quotaLock = { sqlite: QUOTA, postgres: `${QUOTA} FOR UPDATE` }

/** The statement that locks the quota of a bucket, besides the shared lock of the row that a writer has already. */
const bucketLock = {
  sqlite: 'SELECT 1 WHERE ?1 IS NULL',
  postgres: 'SELECT 1 FROM buckets WHERE id = ? FOR NO KEY UPDATE',
}

/**
 * The quotas of accounts, in a table, and of buckets, in their rows. Other processes may change them at any time, so
 * every call reads them, or knows that nothing has changed since they were read. Call `set`, `setIn`, and what must
 * hold with a write, inside a transaction.
 */
export class Quotas {
  readonly #sql

  constructor(connection: Connection) {
    const { engine } = connection
    this.#sql = statements(connection, {
      find: FIND,
      lock: quotaLock[engine],
      set: `
        INSERT INTO quotas (account, bytes, objects, uploads) VALUES (?, ?, ?, ?) ON CONFLICT (account)
        DO UPDATE SET bytes = excluded.bytes, objects = excluded.objects, uploads = excluded.uploads
      `,
      remove: 'DELETE FROM quotas WHERE account = ?',
      usage: `
        SELECT objects, bytes + (SELECT coalesce(sum(bytes), 0) FROM retained WHERE account = ?1) AS bytes
        FROM (${usageIn(connection)}) AS stored
      `,
      lockIn: bucketLock[engine],
      setIn: 'UPDATE buckets SET quota_bytes = ?, quota_objects = ? WHERE id = ?',
      usageIn: `
        SELECT objects, bytes + (SELECT coalesce(sum(bytes), 0) FROM retained WHERE bucket = ?1) AS bytes
        FROM (${contentOf(connection)}) AS stored
      `,
    })
  }

  async of(account: number): Promise<AccountQuota | undefined> {
    const row = await recent<AccountQuota>(this.#sql.find, account)
    return row && isBound(row) ? row : undefined
  }

  /** Like `of`, for a transaction with locks: until its end, no other stores anything for this account. */
  lock(account: number): Promise<AccountQuota | undefined> {
    return this.#sql.lock.get<AccountQuota>(account)
  }

  async usage(account: number): Promise<Usage> {
    return (await this.#sql.usage.get<Usage>(account)) as Usage
  }

  async set(account: number, { bytes, objects, uploads }: AccountQuota): Promise<void> {
    if (!isBound({ bytes, objects, uploads })) await this.#sql.remove.run(account)
    else await this.#sql.set.run(account, bytes, objects, uploads)
  }

  /**
   * Throws GatewayError QuotaExceeded if the account would store more than it may, unless it stores less than before.
   */
  async mustHaveRoom(account: number, quota: AccountQuota, more: Usage): Promise<void> {
    check('account', quota, await this.usage(account), more)
  }

  /** For a transaction with locks: until its end, no other stores anything in this bucket, if it has a quota. */
  async lockIn(bucket: BucketRow): Promise<void> {
    if (quotaOf(bucket) !== undefined) await this.#sql.lockIn.get(bucket.id)
  }

  async usageIn({ id }: BucketRow): Promise<Usage> {
    return (await this.#sql.usageIn.get<Usage>(id)) as Usage
  }

  /** The transaction must be alone in the bucket: writers go by the quota that they have found. */
  async setIn({ id }: BucketRow, { bytes, objects }: Quota): Promise<void> {
    await this.#sql.setIn.run(bytes, objects, id)
  }

  /** Does what `mustHaveRoom` does, for the quota of the bucket. */
  async mustHaveRoomIn(bucket: BucketRow, more: Usage): Promise<void> {
    const quota = quotaOf(bucket)
    if (quota !== undefined) check('bucket', quota, await this.usageIn(bucket), more)
  }
}

function isBound({ bytes, objects, uploads }: AccountQuota): boolean {
  return bytes !== null || objects !== null || uploads !== null
}

/** Undefined for a bucket without one. */
export function quotaOf({ quotaBytes: bytes, quotaObjects: objects }: BucketRow): Quota | undefined {
  return bytes === null && objects === null ? undefined : { bytes, objects }
}

function check(of: 'account' | 'bucket', quota: Quota, present: Usage, more: Usage): void {
  for (const what of ['bytes', 'objects'] as const) {
    const most = quota[what]
    if (most === null || more[what] <= 0 || present[what] + more[what] <= most) continue
    throw new GatewayError('QuotaExceeded', {
      value: `The quota of the ${of} is ${most} ${what}. It has ${present[what]}, and this would add ${more[what]}: remove objects, or ask for a larger quota.`,
    })
  }
}
