import { type Connection, type Database, statements } from '../../store/database.js'
import type { KuboNode } from './kubo-node.js'

export const pinSchema = `
  CREATE TABLE IF NOT EXISTS pins (
    root TEXT PRIMARY KEY,
    asked_ms INTEGER NOT NULL
  ) STRICT;
`

/** Pins examined per batch. */
const BATCH = 100

/**
 * A node whose import was interrupted may still pin the data, but hardly after this long, ms. By then, a process that
 * makes the pin has asked for it anew.
 */
const LATE_MS = 10 * 60_000

/** What `Pins` needs of a database. */
type PinDatabase = Pick<Database<{ readonly pins: PinTable }>, 'read' | 'transaction'>

/** Interval at which a pin in the making is asked for anew, so that no other process removes it, ms. */
const RENEWAL_MS = 60_000

/** The table of pins. Call writing methods inside a transaction. */
export class PinTable {
  readonly #sql

  /**
   * @param connection has `pinSchema`, and the tables of the condition
   * @param unneeded SQL: true for a `root` of `pins` that nothing needs
   */
  constructor(connection: Connection, unneeded: string) {
    this.#sql = statements(connection, {
      find: 'SELECT 1 FROM pins WHERE root = ?',
      note: `INSERT INTO pins (root, asked_ms) VALUES (?, ?)
        ON CONFLICT (root) DO UPDATE SET asked_ms = excluded.asked_ms`,
      forget: 'DELETE FROM pins WHERE root = ? AND asked_ms < ?',
      unneeded: `SELECT root FROM pins WHERE root > ? AND asked_ms < ? AND ${unneeded} ORDER BY root LIMIT ?`,
      renew: 'UPDATE pins SET asked_ms = ? WHERE root = ?',
      touchUnneeded: `UPDATE pins SET asked_ms = asked_ms WHERE root = ? AND asked_ms < ? AND ${unneeded}`,
    })
  }

  async has(root: string): Promise<boolean> {
    return (await this.#sql.find.get(root)) !== undefined
  }

  /** @param asked ms */
  async note(root: string, asked: number): Promise<void> {
    await this.#sql.note.run(root, asked)
  }

  /** Forgets a pin that was asked for before a time, ms. */
  async forget(root: string, before: number): Promise<void> {
    await this.#sql.forget.run(root, before)
  }

  /** Roots above one of them that nothing needs, and that were asked for before a time, ms. */
  async unneeded(after: string, before: number, most: number): Promise<string[]> {
    return (await this.#sql.unneeded.all<{ root: string }>(after, before, most)).map(({ root }) => root)
  }

  /** Call it in a transaction that records what needs the root, so that it takes turns with `isUnneeded`. */
  async renew(root: string, asked: number): Promise<void> {
    await this.#sql.renew.run(asked, root)
  }

  /** Waits for a transaction that has renewed the root, even if its process has lost the connection to it. */
  async isUnneeded(root: string, before: number): Promise<boolean> {
    return (await this.#sql.touchUnneeded.run(root, before)) > 0
  }
}

/**
 * The pins made for deals, or for contents. Each is recorded before it is made, and removed when nothing needs it:
 * because its deals have ended, because its deal failed, or because the process died before recording the deal. Pins
 * that existed before are left alone. Deals pin CIDv1 and contents CIDv0, so that no root is pinned for both: Kubo
 * keeps a pin for each form of a CID, and a block as long as one of them leads to it
 * (https://github.com/ipfs/kubo/blob/v0.38.1/gc/gc.go).
 */
export class Pins {
  readonly #db: PinDatabase
  readonly #node: KuboNode
  readonly #shared: boolean
  /** The last job of each root. */
  readonly #last = new Map<string, Promise<unknown>>()

  /** @param shared true where other processes make pins of the table: what was asked for lately may be theirs */
  constructor(db: PinDatabase, node: KuboNode, shared: boolean) {
    this.#db = db
    this.#node = node
    this.#shared = shared
  }

  /**
   * Runs `job`, which has the node pin the root and records what needs it. No other job of this root runs meanwhile.
   */
  make<T>(root: string, job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#alone(root, async () => {
      signal.throwIfAborted()
      const ours = await this.#db.read.pins.has(root)
      if (ours || !(await this.#node.isPinned(root, signal))) {
        await this.#db.transaction(({ pins }) => pins.note(root, Date.now()))
      }
      return this.#shared ? this.#renewing(root, job) : job()
    })
  }

  async #renewing<T>(root: string, job: () => Promise<T>): Promise<T> {
    const renew = () => this.#db.transaction(({ pins }) => pins.renew(root, Date.now()))
    // The next renewal makes up for one that fails: a pin is old after ten.
    const timer = setInterval(() => void renew().catch(() => {}), RENEWAL_MS).unref()
    try {
      return await job()
    } finally {
      clearInterval(timer)
    }
  }

  /**
   * Removes all pins that nothing needs and no job works on. Rejects when the node fails; the rest is left for the next
   * sweep.
   */
  async sweep(signal?: AbortSignal): Promise<void> {
    const before = this.#shared ? Date.now() - LATE_MS : Number.MAX_SAFE_INTEGER
    for (let last = ''; ; ) {
      const roots = await this.#db.read.pins.unneeded(last, before, BATCH)
      for (const root of roots) {
        if (!this.#last.has(root)) await this.#alone(root, () => this.#takeBack(root, before, signal))
      }
      last = roots.at(-1) ?? ''
      if (roots.length < BATCH) return
    }
  }

  async #takeBack(root: string, before: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    // Something may need it since the list was read.
    if (!(await this.#db.transaction(({ pins }) => pins.isUnneeded(root, before)))) return
    await this.#node.unpin(root, signal)
    await this.#db.transaction(({ pins }) => pins.forget(root, Date.now() - LATE_MS))
  }

  #alone<T>(root: string, job: () => Promise<T>): Promise<T> {
    const before = this.#last.get(root) ?? Promise.resolve()
    const result = before.then(job, job).finally(() => {
      if (this.#last.get(root) === result) this.#last.delete(root)
    })
    this.#last.set(root, result)
    return result
  }
}
