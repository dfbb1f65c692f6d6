import { randomBytes } from 'node:crypto'
import { type Connection, type Database, type Lease, statements } from './database.js'
import { LEASE_MS } from './lease.js'

/**
 * A condition: the lease of another run counts, as we see it. When the database was away for all, all leases have
 * expired: they count until the own run has lasted for as long as a lease, as the others had time by then to get theirs
 * back. One that was released does not count.
 * @param own SQL of the own run
 */
const counts = (own: string): string => `(
  expires > clock_timestamp() OR expires > '-infinity' AND NOT EXISTS (
    SELECT 1 FROM lease AS own WHERE own.name = ${own}
      AND own.since <= clock_timestamp() - ${LEASE_MS} * interval '1 millisecond'
  )
)`

/**
 * A condition: the process whose run a column names does nothing any more. False for the own run, which is the first
 * parameter. SQLite has one process, and every other run is over. In PostgreSQL, a process that was stopped for long
 * counts as ended, and may go on nevertheless: what takes over its work must bear that.
 */
export function isOver({ engine }: Pick<Connection, 'engine'>, column: string): string {
  const other = `(${column} IS NULL OR ${column} <> ?1)`
  if (engine === 'sqlite') return other
  return `${other} AND NOT EXISTS (SELECT 1 FROM lease WHERE name = ${column} AND ${counts('?1')})`
}

const alive = {
  sqlite: 'SELECT 1 FROM (SELECT ?1 AS name, ?2 AS own) AS run WHERE name IS NULL',
  postgres: `SELECT 1 FROM lease WHERE name = ?1 AND ${counts('?2')}`,
}

/** Interval of looks at the own run, ms. */
const LOOK_MS = 1000

/** How the runs of programs begin that know versions of objects, or quotas of buckets as well. */
const PREFIXES = { versions: 'run_v', quotas: 'run_vq' } as const

export type Feature = keyof typeof PREFIXES

/** Names of all runs, those of earlier programs, too. */
const ALL = 'run\\_%'

const prune = {
  sqlite: 'SELECT 1 WHERE 0 = 1',
  postgres: `DELETE FROM lease WHERE name LIKE '${ALL}' AND expires < now() - interval '1 day'`,
}

/**
 * Runs of an earlier program, whose names begin otherwise. One that did not end by itself counts for a day: after a
 * time without the database, its lease begins again.
 */
const earlier = {
  sqlite: 'SELECT 1 WHERE ?1 IS NULL',
  postgres: `
    SELECT 1 FROM lease WHERE name LIKE '${ALL}' AND NOT starts_with(name, ?1)
      AND expires > '-infinity' AND expires > clock_timestamp() - interval '1 day'
  `,
}

/** The runs of other processes. */
export class RunTable {
  readonly #sql

  constructor(connection: Connection) {
    const { engine } = connection
    this.#sql = statements(connection, { alive: alive[engine], prune: prune[engine], earlier: earlier[engine] })
  }

  /** True while another process may do what its rows say, as far as the process of the own run can tell. */
  async isAlive(run: string, own: string): Promise<boolean> {
    return (await this.#sql.alive.get(run, own)) !== undefined
  }

  /** True while a program works with the database that does not know them. */
  async isEarlierAlive(feature: Feature): Promise<boolean> {
    return (await this.#sql.earlier.get(PREFIXES[feature])) !== undefined
  }

  /** Forgets runs that have ended long ago. */
  async prune(): Promise<void> {
    await this.#sql.prune.run()
  }
}

/**
 * The time for which a process runs. Rows that name it are its work; another process takes that over when the run is
 * over.
 */
export class Run {
  readonly name = `${PREFIXES.quotas}${randomBytes(8).toString('hex')}`
  readonly #lease: Lease<unknown>
  readonly #renewal: NodeJS.Timeout | undefined

  private constructor(db: Database<unknown>) {
    this.#lease = db.lease(this.name)
    // After a stop that was too long: others may have taken over some work, and leave what follows alone.
    const renew = () => void this.#lease.take().catch(() => {})
    this.#renewal = db.shared ? setInterval(renew, LOOK_MS).unref() : undefined
  }

  /** Begins a run. End it when none of its work goes on. */
  static async begin(db: Database<unknown>): Promise<Run> {
    const run = new Run(db)
    await run.#lease.take()
    return run
  }

  /** True when another process may do the work of this run. */
  async isElsewhere({ runs }: { readonly runs: RunTable }, run: string | null): Promise<boolean> {
    return run !== null && run !== this.name && (await runs.isAlive(run, this.name))
  }

  async end(): Promise<void> {
    clearInterval(this.#renewal)
    await this.#lease.release()
  }
}
