import type { Pool } from 'pg'
import type { Lease, LeaseStore } from './lease-locks.js'
import { LocalLocks } from './locks.js'

/**
 * Table and function of the leases. Names are bytes, because text in Postgres cannot hold every S3 key. Two
 * transactions that check for conflicts at the same time would miss each other's row: the advisory lock admits one at a
 * time per scope until the statement that called the function ends. Each statement of a volatile function sees what was
 * committed before it (https://www.postgresql.org/docs/current/xfunc-volatility.html). An earlier version had a
 * function `dealgate_acquire` of another type, which stays for proxies of that version.
 */
export const LEASE_SCHEMA = `
  CREATE TABLE IF NOT EXISTS dealgate_lease (
    scope bytea, kind text, name bytea, token text NOT NULL, expires timestamptz NOT NULL, PRIMARY KEY (scope, kind, name)
  );
  CREATE OR REPLACE FUNCTION dealgate_lease_acquire(s bytea, k text, n bytea, t text, ms double precision) RETURNS double precision AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('dealgate/' || encode(s, 'hex'), 0));
    DELETE FROM dealgate_lease WHERE scope = s AND expires <= clock_timestamp();
    IF EXISTS (
      SELECT 1 FROM dealgate_lease held WHERE held.scope = s AND (
        held.name = n
        OR (held.kind = 'prefix' AND substr(n, 1, length(held.name)) = held.name)
        OR (k = 'prefix' AND substr(held.name, 1, length(n)) = n))
    ) THEN
      RETURN NULL;
    END IF;
    INSERT INTO dealgate_lease VALUES (s, k, n, t, clock_timestamp() + ms * interval '1 millisecond');
    RETURN extract(epoch FROM clock_timestamp()) * 1000000;
  END $$ LANGUAGE plpgsql VOLATILE;`

const ACQUIRE = 'SELECT dealgate_lease_acquire($1, $2, $3, $4, $5) AS time'

const RENEW = `
  UPDATE dealgate_lease SET expires = clock_timestamp() + $5 * interval '1 millisecond'
  WHERE scope = $1 AND kind = $2 AND name = $3 AND token = $4
  RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::double precision AS time`

const RELEASE = 'DELETE FROM dealgate_lease WHERE scope = $1 AND kind = $2 AND name = $3 AND token = $4'

export class PostgresLeases implements LeaseStore {
  readonly #pool: Pool
  readonly #turns = new LocalLocks()

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** One call per scope at a time: more would only occupy connections while they wait for each other. */
  async acquire(lease: Lease, ms: number): Promise<number | undefined> {
    return this.#turns.withName(lease.scope, () => this.#time(ACQUIRE, [...parametersOf(lease), ms]))
  }

  renew(lease: Lease, ms: number): Promise<number | undefined> {
    return this.#time(RENEW, [...parametersOf(lease), ms])
  }

  async release(lease: Lease): Promise<void> {
    await this.#pool.query(RELEASE, parametersOf(lease))
  }

  async #time(query: string, values: readonly (Buffer | string | number)[]): Promise<number | undefined> {
    const { rows } = await this.#pool.query<{ time: number | null }>(query, [...values])
    const time = rows[0]?.time
    return typeof time === 'number' ? Math.round(time) : undefined
  }
}

function parametersOf(lease: Lease): (Buffer | string)[] {
  return [Buffer.from(lease.scope), lease.kind, Buffer.from(lease.name), lease.token]
}
