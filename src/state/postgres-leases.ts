import type { Pool } from 'pg'
import type { Lease, LeaseStore } from './lease-locks.js'
import { LocalLocks } from './locks.js'

/**
 * Table and function of the leases. Names are bytes, for text in Postgres cannot hold every key that S3 can. Two who look for conflicts at once would
 * each miss the other's row: the advisory lock lets one at a time into a scope until the statement that called the function ends. Each statement of
 * a volatile function sees what was committed before it (https://www.postgresql.org/docs/current/xfunc-volatility.html).
 */
export const LEASE_SCHEMA = `
  CREATE TABLE IF NOT EXISTS dealgate_lease (
    scope bytea, kind text, name bytea, token text NOT NULL, expires timestamptz NOT NULL, PRIMARY KEY (scope, kind, name)
  );
  CREATE OR REPLACE FUNCTION dealgate_acquire(s bytea, k text, n bytea, t text, ms double precision) RETURNS boolean AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('dealgate/' || encode(s, 'hex'), 0));
    DELETE FROM dealgate_lease WHERE scope = s AND expires <= clock_timestamp();
    IF EXISTS (
      SELECT 1 FROM dealgate_lease held WHERE held.scope = s AND (
        held.name = n
        OR (held.kind = 'prefix' AND substr(n, 1, length(held.name)) = held.name)
        OR (k = 'prefix' AND substr(held.name, 1, length(n)) = n))
    ) THEN
      RETURN false;
    END IF;
    INSERT INTO dealgate_lease VALUES (s, k, n, t, clock_timestamp() + ms * interval '1 millisecond');
    RETURN true;
  END $$ LANGUAGE plpgsql VOLATILE;`

const ACQUIRE = 'SELECT dealgate_acquire($1, $2, $3, $4, $5) AS acquired'

const RENEW = `
  UPDATE dealgate_lease SET expires = clock_timestamp() + $5 * interval '1 millisecond'
  WHERE scope = $1 AND kind = $2 AND name = $3 AND token = $4`

const RELEASE = 'DELETE FROM dealgate_lease WHERE scope = $1 AND kind = $2 AND name = $3 AND token = $4'

export class PostgresLeases implements LeaseStore {
  readonly #pool: Pool
  readonly #turns = new LocalLocks()

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** One call in a scope at a time: more would only occupy further connections while they wait for each other. */
  async acquire(lease: Lease, ms: number): Promise<boolean> {
    const { rows } = await this.#turns.withName(lease.scope, () => {
      return this.#pool.query<{ acquired: boolean }>(ACQUIRE, [...parametersOf(lease), ms])
    })
    return rows[0]?.acquired === true
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
