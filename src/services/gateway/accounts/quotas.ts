import type { Database } from '../../database.js'
import { GatewayError } from '../errors.js'

/** What an account may store in all of its buckets; null for no bound. */
export interface AccountQuota {
  readonly bytes: number | null
  readonly objects: number | null
  /** Multipart uploads under way, which the clients of the gateway count. */
  readonly uploads: number | null
}

export const NO_QUOTA: AccountQuota = Object.freeze({ bytes: null, objects: null, uploads: null })

/** Objects in deals alone have no bytes here; removed ones have bytes while a pending deal reads them. */
export interface AccountUsage {
  readonly bytes: number
  readonly objects: number
}

/**
 * The table of quotas. Other processes may change it at any time, so every call reads it. Call `set`, and what must
 * hold with a write, inside a transaction.
 */
export class Quotas {
  readonly #find
  readonly #set
  readonly #remove
  readonly #usage

  constructor(db: Database) {
    this.#find = db.prepare('SELECT bytes, objects, uploads FROM quotas WHERE account = ?')
    this.#set = db.prepare('INSERT OR REPLACE INTO quotas (account, bytes, objects, uploads) VALUES (?, ?, ?, ?)')
    this.#remove = db.prepare('DELETE FROM quotas WHERE account = ?')
    this.#usage = db.prepare(
      'SELECT total(objects) AS objects, total(bytes) + (SELECT total(bytes) FROM retained WHERE account = ?1) AS bytes FROM buckets WHERE owner = ?1',
    )
  }

  /** Undefined if the account has none. */
  of(account: number): AccountQuota | undefined {
    return this.#find.get(account)
  }

  usage(account: number): AccountUsage {
    return this.#usage.get(account) as AccountUsage
  }

  set(account: number, { bytes, objects, uploads }: AccountQuota): void {
    if (bytes === null && objects === null && uploads === null) this.#remove.run(account)
    else this.#set.run(account, bytes, objects, uploads)
  }

  /**
   * Throws GatewayError QuotaExceeded if the account would store more than it may, unless it stores less than before.
   */
  mustHaveRoom(account: number, quota: AccountQuota, more: AccountUsage): void {
    const { bytes, objects } = this.usage(account)
    check('bytes', quota.bytes, bytes, more.bytes)
    check('objects', quota.objects, objects, more.objects)
  }
}

function check(what: string, most: number | null, present: number, more: number): void {
  if (most === null || more <= 0 || present + more <= most) return
  throw new GatewayError('QuotaExceeded', {
    value: `The quota of the account is ${most} ${what}. It has ${present}, and this would add ${more}: remove objects, or ask for a larger quota.`,
  })
}
