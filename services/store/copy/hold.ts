import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import pg from 'pg'
import type { Schema } from '../database.js'
import { LEASE_MS } from '../lease.js'
import { HEARTBEAT_MS, MAX_TAKEOVER_MS, SESSION } from '../postgres-claim.js'
import { asking } from '../postgres-errors.js'
import { CONNECT_MS, COPY, schemaOf } from '../postgres-pools.js'

/** Time for the server to notice that a process has ended, and pause between two looks, ms. */
const PATIENCE_MS = 1000
const PAUSE_MS = 50

const LOCK = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS free'

/** The connections of a service have its name. */
const IDLE = `
  SELECT count(*) = 0 AS free FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = ANY($1)`

/** A service that has lost its connections goes on when it gets others: it is gone when its leases have expired. */
const LEFT = (schema: string) => `
  SELECT NOT EXISTS (
    SELECT FROM ${schema}.lease WHERE expires > clock_timestamp() AND expires < 'infinity'
  ) AS free`

/** A process that was stopped while its connections were lost changes nothing after this: see PostgresClaim. */
const FENCE = (schema: string) => `UPDATE ${schema}.lease SET token = token + 1 WHERE name = 'everything'`

/** Holds a PostgreSQL database for a copy. */
interface HeldPostgres {
  has(schema: Pick<Schema<unknown>, 'name'>): Promise<boolean>
  /**
   * Throws DatabaseUnavailableError when the connection was lost, and what it held with it, and RangeError when a
   * service runs.
   */
  require(): Promise<void>
  release(): Promise<void>
}

/**
 * Sees to it that no service of these schemas runs, which takes some seconds after one was killed; those that start
 * wait until the release, if `starts` is false. Throws RangeError while one runs, or another copy does.
 */
export async function holdPostgres(
  url: string,
  schemas: readonly Pick<Schema<unknown>, 'name'>[],
  { starts }: { readonly starts: boolean },
): Promise<HeldPostgres> {
  const names = schemas.map(schemaOf)
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: MAX_TAKEOVER_MS,
    options: SESSION.map((one) => `-c ${one}`).join(' '),
  })
  client.on('error', () => {})
  let heartbeat: NodeJS.Timeout | undefined
  const end = () => {
    clearInterval(heartbeat)
    return client.end().catch(() => {})
  }
  // The driver wants one question after the other.
  const inTurn = pLimit(1)
  const query = (text: string, values?: unknown[]) => inTurn(() => asking(() => client.query(text, values)))
  const isFree = async (sql: string, ...values: unknown[]) => (await query(sql, values)).rows[0].free as boolean
  const isThere = async (sql: string, name: string) => (await query(sql, [name])).rows[0].found !== null
  const hasLeases = (name: string) => isThere('SELECT to_regclass($1) AS found', `${name}.lease`)
  const isLeft = async () => {
    for (const name of names) if ((await hasLeases(name)) && !(await isFree(LEFT(name)))) return false
    return true
  }
  const inUse = () => new RangeError('A service or another copy uses the database: stop it first.')
  try {
    await asking(() => client.connect())
    // What a service takes that runs alone, and then while it brings its tables up to date.
    const locks = [...names.map((name) => `${name} everything`), ...(starts ? [] : names)]
    const waitFor = async (isOver: () => Promise<boolean>, latest: number) => {
      while (!(await isOver())) {
        if (performance.now() > latest) throw inUse()
        await sleep(PAUSE_MS)
      }
    }
    const latest = performance.now() + PATIENCE_MS
    const wanted: [string, unknown][] = [COPY, ...locks].map((name) => [LOCK, name])
    for (const [sql, value] of [...wanted, [IDLE, names] as const]) await waitFor(() => isFree(sql, value), latest)
    await waitFor(isLeft, latest + LEASE_MS)
    if (!starts) for (const name of names) if (await hasLeases(name)) await query(FENCE(name))
    // What is between the two must not end a connection that says nothing for hours.
    heartbeat = setInterval(() => query('SELECT 1').catch(end), HEARTBEAT_MS).unref()
  } catch (error) {
    await end()
    throw error
  }
  return {
    has: (schema) => isThere('SELECT to_regnamespace($1) AS found', schemaOf(schema)),
    require: async () => {
      if (!(await isFree(IDLE, names)) || !(await isLeft())) throw inUse()
    },
    release: end,
  }
}
