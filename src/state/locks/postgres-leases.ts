import type { Pool } from 'pg'
import type { Lease, LeaseStore } from './lease-store.js'

const ACQUIRE = 'SELECT dealgate_lease_take($1, $2, $3, $4, $5, $6) AS time'

const RENEW = 'SELECT dealgate_lease_renew($1, $2, $3, $4, $5) AS time'

const YIELD = 'SELECT dealgate_lease_yield($1, $2, $3, $4, $5) AS time'

const RELEASE = 'SELECT dealgate_lease_release($1, $2, $3, $4)'

/** Time after its end for which the row of a lease stays, at least. */
const KEPT = "interval '1 hour'"

/** Rows that are being used are left for the next time. */
const CLEAN = ['dealgate_lease', 'dealgate_lease_wait'].map(
  (table) =>
    `DELETE FROM ${table} WHERE ctid IN
      (SELECT ctid FROM ${table} WHERE expires < clock_timestamp() - ${KEPT} FOR UPDATE SKIP LOCKED)`,
)

/** Leases in PostgreSQL: see postgres-lease-schema.ts. */
export class PostgresLeases implements LeaseStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  acquire(lease: Lease, ms: number, waitedMs = 0): Promise<number | undefined> {
    return this.#time(ACQUIRE, [...parametersOf(lease), ms, waitedMs])
  }

  renew(lease: Lease, ms: number): Promise<number | undefined> {
    return this.#time(RENEW, [...parametersOf(lease), ms])
  }

  yield(lease: Lease, ms: number): Promise<number | undefined> {
    return this.#time(YIELD, [...parametersOf(lease), ms])
  }

  async release(lease: Lease): Promise<void> {
    await this.#pool.query(RELEASE, parametersOf(lease))
  }

  /** Removes what proxies that died have left in scopes that are not used again. */
  async clean(): Promise<void> {
    for (const statement of CLEAN) await this.#pool.query(statement)
  }

  async #time(query: string, values: readonly (Buffer | string | number)[]): Promise<number | undefined> {
    const { rows } = await this.#pool.query<{ time: number | null }>(query, [...values])
    const time = rows[0]?.time
    return typeof time === 'number' ? Math.round(time) : undefined
  }
}

function parametersOf({ scope, kind, name, token }: Lease): (Buffer | string)[] {
  return [Buffer.from(scope), kind, Buffer.from(name), token]
}
