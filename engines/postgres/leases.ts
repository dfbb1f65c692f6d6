import type { Pool } from 'pg'
import { type Lease, type LeaseStore, WAITING_MS } from '../../src/state/locks/memory-leases.js'
import { STORE } from '../../src/state/signals.js'
import { POSTGRES_CHANNEL } from './signals.js'

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

/** Leases in PostgreSQL, by the functions of LEASE_SCHEMA. */
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

/**
 * Tables and functions of the leases. Names are bytes, because text in Postgres cannot hold every S3 key. Each
 * statement of a volatile function sees what was committed before it
 * (https://www.postgresql.org/docs/current/xfunc-volatility.html).
 *
 * Two transactions that check for conflicts at the same time would miss each other's row. The primary key excludes two
 * leases of one name; the advisory lock of the scope, shared by names and exclusive for prefixes, excludes the check of
 * a prefix while names are taken. Leases of different keys of one bucket do not wait for each other. An expired lease
 * stays lost, because a name below an expired prefix may be held by another token. Earlier versions had functions
 * `dealgate_acquire` and `dealgate_lease_acquire`, which stay for proxies of those versions and take the same advisory
 * lock exclusively.
 *
 * `dealgate_lease_wait` is the line of the waiters: see LeaseStore. It is empty after a crash of the server, like the
 * memory of the waiters.
 */
export const LEASE_SCHEMA = `
  CREATE TABLE IF NOT EXISTS dealgate_lease (
    scope bytea, kind text, name bytea, token text NOT NULL, expires timestamptz NOT NULL, PRIMARY KEY (scope, kind, name)
  );
  CREATE UNLOGGED TABLE IF NOT EXISTS dealgate_lease_wait (
    scope bytea, kind text, name bytea, token text NOT NULL, since double precision NOT NULL, expires timestamptz NOT NULL,
    PRIMARY KEY (scope, kind, name)
  );
  CREATE OR REPLACE FUNCTION dealgate_lease_ahead(s bytea, k text, n bytea, t text, before double precision) RETURNS text AS $$
    SELECT token FROM dealgate_lease_wait w
    WHERE w.scope = s AND w.token <> t AND w.since <= before AND w.expires > clock_timestamp() AND (
      (k = 'name' AND w.kind = 'name' AND w.name = n)
      OR (w.kind = 'prefix' AND substr(n, 1, length(w.name)) = w.name)
      OR (k = 'prefix' AND w.kind = 'prefix' AND substr(w.name, 1, length(n)) = n))
    ORDER BY w.since LIMIT 1;
  $$ LANGUAGE sql VOLATILE;
  CREATE OR REPLACE FUNCTION dealgate_lease_take(s bytea, k text, n bytea, t text, ms double precision, waited double precision) RETURNS double precision AS $$
  DECLARE
    micros double precision;
    free boolean;
  BEGIN
    IF k = 'prefix' THEN
      PERFORM pg_advisory_xact_lock(hashtextextended('dealgate/' || encode(s, 'hex'), 0));
      DELETE FROM dealgate_lease WHERE scope = s AND expires <= clock_timestamp();
    ELSE
      PERFORM pg_advisory_xact_lock_shared(hashtextextended('dealgate/' || encode(s, 'hex'), 0));
    END IF;
    micros := extract(epoch FROM clock_timestamp()) * 1000000;
    free := NOT EXISTS (
      SELECT 1 FROM dealgate_lease held WHERE held.scope = s AND held.expires > clock_timestamp() AND (
        held.name = n
        OR (held.kind = 'prefix' AND substr(n, 1, length(held.name)) = held.name)
        OR (k = 'prefix' AND substr(held.name, 1, length(n)) = n))
    ) AND dealgate_lease_ahead(s, k, n, t, micros - waited * 1000) IS NULL;
    IF free THEN
      INSERT INTO dealgate_lease AS held VALUES (s, k, n, t, clock_timestamp() + ms * interval '1 millisecond')
        ON CONFLICT (scope, kind, name) DO UPDATE SET token = excluded.token, expires = excluded.expires
        WHERE held.expires <= clock_timestamp();
      IF FOUND THEN
        DELETE FROM dealgate_lease_wait WHERE scope = s AND kind = k AND name = n AND token = t;
        RETURN extract(epoch FROM clock_timestamp()) * 1000000;
      END IF;
    END IF;
    INSERT INTO dealgate_lease_wait AS w VALUES (s, k, n, t, micros - waited * 1000, clock_timestamp() + ${WAITING_MS} * interval '1 millisecond')
      ON CONFLICT (scope, kind, name) DO UPDATE SET token = excluded.token, since = excluded.since, expires = excluded.expires
      WHERE w.token = excluded.token OR w.since > excluded.since OR w.expires <= clock_timestamp();
    RETURN NULL;
  END $$ LANGUAGE plpgsql VOLATILE;
  CREATE OR REPLACE FUNCTION dealgate_lease_release(s bytea, k text, n bytea, t text) RETURNS void AS $$
  DECLARE
    who text;
  BEGIN
    DELETE FROM dealgate_lease WHERE scope = s AND kind = k AND name = n AND token = t;
    IF NOT FOUND THEN
      DELETE FROM dealgate_lease_wait WHERE scope = s AND kind = k AND name = n AND token = t;
      RETURN;
    END IF;
    who := dealgate_lease_ahead(s, k, n, t, 'infinity');
    IF who IS NOT NULL THEN PERFORM pg_notify('${POSTGRES_CHANNEL}', '${STORE} lease ' || who); END IF;
  END $$ LANGUAGE plpgsql VOLATILE;
  CREATE OR REPLACE FUNCTION dealgate_lease_renew(s bytea, k text, n bytea, t text, ms double precision) RETURNS double precision AS $$
  BEGIN
    IF k = 'prefix' THEN PERFORM pg_advisory_xact_lock(hashtextextended('dealgate/' || encode(s, 'hex'), 0)); END IF;
    UPDATE dealgate_lease SET expires = clock_timestamp() + ms * interval '1 millisecond'
      WHERE scope = s AND kind = k AND name = n AND token = t AND expires > clock_timestamp();
    IF NOT FOUND THEN RETURN NULL; END IF;
    RETURN extract(epoch FROM clock_timestamp()) * 1000000;
  END $$ LANGUAGE plpgsql VOLATILE;
  CREATE OR REPLACE FUNCTION dealgate_lease_yield(s bytea, k text, n bytea, t text, ms double precision) RETURNS double precision AS $$
  BEGIN
    IF dealgate_lease_ahead(s, k, n, t, 'infinity') IS NOT NULL THEN
      PERFORM dealgate_lease_release(s, k, n, t);
      RETURN NULL;
    END IF;
    RETURN dealgate_lease_renew(s, k, n, t, ms);
  END $$ LANGUAGE plpgsql VOLATILE;`
