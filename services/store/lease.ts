import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServicesLog } from '../log.js'
import {
  type Database,
  DatabaseUnavailableError,
  type Lease,
  LeaseLostError,
  type Row,
  type Value,
} from './database.js'

/** Name of this process in the table, for those who look who has a lease or a claim. */
export const HOLDER = `${hostname()}/${process.pid}`

/** Time after which others get the lease of a process that has died or stopped, ms; renewed three times as often. */
export const LEASE_MS = 10_000

/** Part of the lease that is not used for what the database cannot check: clocks run at slightly different rates. */
const MARGIN = 0.1

/** What a transaction checks at its beginning, and keeps as it is until its end. */
export interface Guard {
  /**
   * A statement that returns one row. FOR KEY SHARE bears the renewal of the row, and keeps the token, which is of a
   * unique index, as it is (https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-ROWS).
   */
  readonly check: string
  /** The error when it returns none. */
  lost(): Error
}

/** The lease of a database that one process has for itself. */
export function soleLease<T>(db: Database<T>): Lease<T> {
  const { signal } = new AbortController()
  return { db, signal, held: () => true, take: async () => true, release: async () => {} }
}

/** Pause between attempts to get a lease that another process has for a moment, ms. */
const AGAIN_MS = 200

/**
 * Runs work with a lease that others have for a moment. Throws DatabaseUnavailableError when one has it for longer.
 * @param maxWaitMs longest wait
 */
export async function withLease<T>(lease: Lease<unknown>, work: () => Promise<T>, maxWaitMs: number): Promise<T> {
  const latest = performance.now() + maxWaitMs
  while (!(await lease.take())) {
    if (performance.now() > latest) throw new DatabaseUnavailableError('Another process does the same for long.')
    await sleep(AGAIN_MS)
  }
  try {
    return await work()
  } finally {
    await lease.release()
  }
}

/** How processes share a database. */
export interface SharedDatabase<T> {
  /** Runs a statement by itself. */
  ask(sql: string, values: readonly Value[]): Promise<readonly Row[]>
  /** The database, with a check in each transaction. */
  guarded(guard: Guard): Database<T>
}

const TAKE = `
  INSERT INTO lease AS held (name, token, holder, expires, since)
  VALUES ($1, 1, $2, clock_timestamp() + $3 * interval '1 millisecond', clock_timestamp())
  ON CONFLICT (name) DO UPDATE SET token = held.token + 1, holder = excluded.holder, expires = excluded.expires,
    since = excluded.since
  WHERE held.expires <= clock_timestamp() RETURNING token`

/** Renews a lease. One that has expired is taken anew: a renewal that PostgreSQL got too late leaves a gap. */
const RENEW = `
  UPDATE lease SET expires = clock_timestamp() + $3 * interval '1 millisecond'
  WHERE name = $1 AND token = $2 AND expires > clock_timestamp() RETURNING token`

const RELEASE = "UPDATE lease SET expires = '-infinity' WHERE name = $1 AND token = $2"

/** A row with a token that each holder raises. A takeover waits for transactions that have checked the former one. */
export class SharedLease<T> implements Lease<T>, Guard {
  readonly db: Database<T>
  readonly #name: string
  readonly #database: SharedDatabase<T>
  readonly #log: ServicesLog
  #lost = new AbortController()
  #token = 0
  /** End of the time in which others cannot have the lease. */
  #until: Instant = LONG_AGO
  #taking: Promise<boolean> | undefined
  #renewal: NodeJS.Timeout | undefined

  /** @param name letters */
  constructor(name: string, database: SharedDatabase<T>, log: ServicesLog) {
    this.#name = name
    this.#database = database
    this.#log = log
    this.#lost.abort()
    this.db = database.guarded(this)
  }

  get signal(): AbortSignal {
    return this.#lost.signal
  }

  get check(): string {
    return `SELECT 1 FROM lease WHERE name = '${this.#name}' AND token = ${this.#token} FOR KEY SHARE`
  }

  lost(): Error {
    this.#end()
    return new LeaseLostError(`This process does not have the lease ${this.#name} any more.`)
  }

  held(): boolean {
    if (isBefore(now(), this.#until)) return true
    this.#end()
    return false
  }

  async take(): Promise<boolean> {
    if (this.held()) return true
    this.#taking ??= this.#take().finally(() => {
      this.#taking = undefined
    })
    return this.#taking
  }

  async release(): Promise<void> {
    const token = this.#token
    this.#end()
    // A lease that is not released here expires.
    if (token > 0) await this.#database.ask(RELEASE, [this.#name, token]).catch(() => {})
  }

  async #take(): Promise<boolean> {
    this.#end()
    const asked = now()
    const [row] = await this.#database.ask(TAKE, [this.#name, HOLDER, LEASE_MS])
    if (row === undefined) return false
    this.#token = Number(row.token)
    this.#lost = new AbortController()
    this.#until = endOf(asked)
    this.#renewal = setInterval(() => void this.#renew(), LEASE_MS / 3).unref()
    return true
  }

  async #renew(): Promise<void> {
    const token = this.#token
    try {
      const asked = now()
      const isOurs = this.held() && (await this.#database.ask(RENEW, [this.#name, token, LEASE_MS])).length === 1
      if (token !== this.#token) return
      if (isOurs) this.#until = endOf(asked)
      else this.#end()
    } catch (err) {
      this.#log.warn({ err, lease: this.#name }, 'Could not renew a lease yet.')
    }
  }

  #end(): void {
    if (this.#token === 0) return
    clearInterval(this.#renewal)
    this.#token = 0
    this.#until = LONG_AGO
    this.#lost.abort(new LeaseLostError(`The lease ${this.#name} is lost.`))
  }
}

/**
 * A time by two clocks, in ms. The monotonic one stands still while the machine sleeps, and the other may be set back.
 */
interface Instant {
  readonly monotonic: number
  readonly wall: number
}

const LONG_AGO: Instant = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }

function now(): Instant {
  return { monotonic: performance.now(), wall: Date.now() }
}

function endOf({ monotonic, wall }: Instant): Instant {
  const own = LEASE_MS * (1 - MARGIN)
  return { monotonic: monotonic + own, wall: wall + own }
}

function isBefore(one: Instant, other: Instant): boolean {
  return one.monotonic < other.monotonic && one.wall < other.wall
}
