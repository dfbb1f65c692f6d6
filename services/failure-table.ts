import { FailureCounts, FORGET_MS, waitAfter } from './failure-counts.js'
import { type Database, tableOf } from './store/database.js'

/** What an attempt fails for: each counts by itself, and makes others wait after some failures. */
interface FailureCounter {
  readonly key: string
  /** Failures before a wait applies. */
  readonly free: number
}

/** Counts failures of attempts from their beginning, so that many at the same time do not escape the count. */
export interface Failures {
  /**
   * Counts a failure in each counter, unless one of `waits` must wait.
   * @returns the rest of the wait, ms, and the failures by now, in the order of the counters
   */
  begin(counters: readonly FailureCounter[], waits: readonly string[]): Promise<BegunAttempt>
  /** Takes one failure back that turned out to be none, of each of `none`, and forgets all of `forgotten`. */
  end(none: readonly string[], forgotten: readonly string[]): Promise<void>
}

interface BegunAttempt {
  readonly waitMs: number
  readonly counts: readonly number[]
}

/** In the memory of one process. */
export class OwnFailures implements Failures {
  readonly #counts: FailureCounts

  /** @param now ms of a monotonic clock */
  constructor(now: () => number) {
    this.#counts = new FailureCounts(now)
  }

  async begin(counters: readonly FailureCounter[], waits: readonly string[]): Promise<BegunAttempt> {
    const waitMs = Math.max(0, ...waits.map((key) => this.#counts.waitOf(key)))
    return { waitMs, counts: waitMs > 0 ? [] : counters.map(({ key, free }) => this.#counts.count(key, free)) }
  }

  async end(none: readonly string[], forgotten: readonly string[]): Promise<void> {
    for (const key of none) this.#counts.takeBack(key)
    for (const key of forgotten) this.#counts.forget(key)
  }
}

type FailureDatabase = Database<{ readonly failures: FailureTable }>

/** In a database, for several processes. */
export class SharedFailures implements Failures {
  readonly #db: FailureDatabase
  readonly #now: () => number

  /** @param now ms, of a clock that all processes have */
  constructor(db: FailureDatabase, now: () => number) {
    this.#db = db
    this.#now = now
  }

  begin(counters: readonly FailureCounter[], waits: readonly string[]): Promise<BegunAttempt> {
    const now = this.#now()
    if (counters.length === 0) return this.#waitOf(waits, now)
    return this.#db.transaction(async ({ failures }) => {
      let waitMs = 0
      for (const key of waits) waitMs = Math.max(waitMs, ((await failures.find(key, now))?.until ?? 0) - now)
      const counts: number[] = []
      if (waitMs > 0) return { waitMs, counts }
      for (const counter of counters) counts.push(await failures.count(counter, now))
      return { waitMs, counts }
    })
  }

  async #waitOf(waits: readonly string[], now: number): Promise<BegunAttempt> {
    const rows = await Promise.all(waits.map((key) => this.#db.read.failures.find(key, now)))
    return { waitMs: Math.max(0, ...rows.map((row) => (row?.until ?? 0) - now)), counts: [] }
  }

  async #areKnown(keys: readonly string[]): Promise<boolean> {
    const rows = await Promise.all(keys.map((key) => this.#db.read.failures.find(key, this.#now())))
    return rows.some((row) => row !== undefined)
  }

  async end(none: readonly string[], forgotten: readonly string[]): Promise<void> {
    // Most succeed at once: without a transaction.
    if (none.length === 0 && !(await this.#areKnown(forgotten))) return
    await this.#db.transaction(async ({ failures }) => {
      for (const key of none) await failures.takeBack(key)
      for (const key of forgotten) await failures.forget(key)
    })
  }
}

interface FailureRow {
  readonly failures: number
  readonly until: number
}

/** The table of failures. Call its methods inside a transaction. */
export class FailureTable extends tableOf({
  find: 'SELECT failures, until_ms AS until FROM failures WHERE name = ? AND last_ms >= ?',
  put: `INSERT INTO failures (name, failures, last_ms, until_ms) VALUES (?, ?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET failures = excluded.failures, last_ms = excluded.last_ms,
      until_ms = excluded.until_ms`,
  takeBack: 'UPDATE failures SET failures = failures - 1, until_ms = 0 WHERE name = ?',
  forget: 'DELETE FROM failures WHERE name = ?',
  prune: 'DELETE FROM failures WHERE last_ms < ? OR failures <= 0',
}) {
  find(key: string, now: number): Promise<FailureRow | undefined> {
    return this.sql.find.get<FailureRow>(key, Math.floor(now - FORGET_MS))
  }

  /** Counts a failure. Returns their number by now. */
  async count({ key, free }: FailureCounter, now: number): Promise<number> {
    const count = ((await this.find(key, now))?.failures ?? 0) + 1
    // Few are left at any time: each first failure removes those that are forgotten.
    if (count === 1) await this.sql.prune.run(Math.floor(now - FORGET_MS))
    await this.sql.put.run(key, count, Math.floor(now), Math.floor(now + waitAfter(count, free)))
    return count
  }

  async takeBack(key: string): Promise<void> {
    await this.sql.takeBack.run(key)
  }

  async forget(key: string): Promise<void> {
    await this.sql.forget.run(key)
  }
}

/** Failures to sign in, by what they count for. Times are ms; rows that are older than a while count as none. */
export const failureSchema = `
  CREATE TABLE failures (
    name TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX failures_by_age ON failures (last_ms);
`
