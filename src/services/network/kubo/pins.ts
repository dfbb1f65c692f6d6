import type { Database, Writer } from '../../database.js'
import type { KuboNode } from './kubo-node.js'

export const pinSchema = `
  CREATE TABLE IF NOT EXISTS pins (
    root TEXT PRIMARY KEY,
    asked_ms INTEGER NOT NULL
  ) STRICT;
`

/** Pins that are looked at in one go. */
const BATCH = 100

/** A node that was left in the middle of an import may still pin what it had, though hardly for longer than this, ms. */
const LATE_MS = 10 * 60_000

/**
 * The pins that were made for deals, each noted before it is made, and taken back when no deal needs it any more: because its deals have ended, because the one it
 * was made for did not come about, or because the process died before it did. What somebody else had pinned before is left alone.
 */
export class Pins {
  readonly #writer: Writer
  readonly #node: KuboNode
  readonly #find
  readonly #note
  readonly #forget
  readonly #unneeded
  readonly #isUnneeded
  /** Jobs about a root, the last one of each. */
  readonly #last = new Map<string, Promise<unknown>>()

  /** `db` has `pinSchema` and `dealSchema`; a deal's custody is the root of its DAG. */
  constructor(db: Database, writer: Writer, node: KuboNode) {
    this.#writer = writer
    this.#node = node
    const unneeded = 'NOT EXISTS (SELECT 1 FROM deals WHERE custody = root)'
    this.#find = db.prepare('SELECT 1 FROM pins WHERE root = ?')
    this.#note = db.prepare('INSERT OR REPLACE INTO pins (root, asked_ms) VALUES (?, ?)')
    this.#forget = db.prepare('DELETE FROM pins WHERE root = ? AND asked_ms < ?')
    this.#unneeded = db.prepare(`SELECT root FROM pins WHERE root > ? AND ${unneeded} ORDER BY root LIMIT ?`)
    this.#isUnneeded = db.prepare(`SELECT 1 FROM pins WHERE root = ? AND ${unneeded}`)
  }

  /** Runs `job`, which has the node pin the root and records a deal in whose custody it is. Nothing else happens to this root meanwhile. */
  make<T>(root: string, job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#alone(root, async () => {
      signal.throwIfAborted()
      const ours = this.#find.get(root) !== undefined
      if (ours || !(await this.#node.isPinned(root, signal))) {
        await this.#writer.run(() => this.#note.run(root, Date.now()))
      }
      return job()
    })
  }

  /** Takes back all that no deal needs and no job is about. Rejects when the node does not do it; the rest is left for the next time. */
  async sweep(signal?: AbortSignal): Promise<void> {
    for (let last = ''; ; ) {
      const roots = this.#unneeded.all(last, BATCH).map(({ root }) => root as string)
      for (const root of roots) {
        if (!this.#last.has(root)) await this.#alone(root, () => this.#takeBack(root, signal))
      }
      last = roots.at(-1) ?? ''
      if (roots.length < BATCH) return
    }
  }

  async #takeBack(root: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    // A deal may have come about since the list was made.
    if (this.#isUnneeded.get(root) === undefined) return
    await this.#node.unpin(root, signal)
    await this.#writer.run(() => this.#forget.run(root, Date.now() - LATE_MS))
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
