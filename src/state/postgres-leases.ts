import type { Pool } from 'pg'
import type { Lease, LeaseStore } from './lease-locks.js'

/** Names are bytes, for text in Postgres cannot hold every key that S3 can. */
export const LEASE_TABLE = `
  CREATE TABLE IF NOT EXISTS dealgate_lease (
    scope bytea, kind text, name bytea, token text NOT NULL, expires timestamptz NOT NULL, PRIMARY KEY (scope, kind, name)
  )`

const EXPIRES = `clock_timestamp() + $5 * interval '1 millisecond'`

const ACQUIRE = `
  INSERT INTO dealgate_lease (scope, kind, name, token, expires)
  SELECT $1::bytea, $2::text, $3::bytea, $4::text, ${EXPIRES}
  WHERE NOT EXISTS (
    SELECT 1 FROM dealgate_lease held WHERE held.scope = $1 AND (
      held.name = $3
      OR (held.kind = 'prefix' AND substr($3, 1, length(held.name)) = held.name)
      OR ($2 = 'prefix' AND substr(held.name, 1, length($3::bytea)) = $3)))`

const RENEW = `
  UPDATE dealgate_lease SET expires = ${EXPIRES} WHERE scope = $1 AND kind = $2 AND name = $3 AND token = $4`

const RELEASE = 'DELETE FROM dealgate_lease WHERE scope = $1 AND kind = $2 AND name = $3 AND token = $4'

export class PostgresLeases implements LeaseStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async acquire(lease: Lease, ms: number): Promise<boolean> {
    const client = await this.#pool.connect()
    // A lost connection fails the query under way and is an event as well, which would end the process if nobody listened.
    const onError = () => undefined
    client.on('error', onError)
    let failed = true
    try {
      await client.query('BEGIN')
      // Two who look for conflicts at once would each miss the other's row: one at a time in a scope, until the end of the transaction.
      await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`dealgate/${lease.scope}`])
      await client.query('DELETE FROM dealgate_lease WHERE scope = $1 AND expires <= clock_timestamp()', [
        Buffer.from(lease.scope),
      ])
      const { rowCount } = await client.query(ACQUIRE, [...parametersOf(lease), ms])
      await client.query('COMMIT')
      failed = false
      return rowCount === 1
    } finally {
      // A connection that failed within a transaction is not to be used again.
      client.off('error', onError)
      client.release(failed)
    }
  }

  async renew(lease: Lease, ms: number): Promise<boolean> {
    const { rowCount } = await this.#pool.query(RENEW, [...parametersOf(lease), ms])
    return rowCount === 1
  }

  async release(lease: Lease): Promise<void> {
    await this.#pool.query(RELEASE, parametersOf(lease))
  }
}

function parametersOf(lease: Lease): (Buffer | string)[] {
  return [Buffer.from(lease.scope), lease.kind, Buffer.from(lease.name), lease.token]
}
