import type { Database, Writer } from '../../database.js'
import type { Blobs } from './blobs.js'
import type { Freed, Objects } from './objects.js'

/** A claim on bodies of one bucket. */
export interface Hold {
  covers(generation: string): boolean
}

/** Bodies let go in one transaction at most. */
const RELEASE_BATCH = 500

/**
 * Bodies that a deal is being made of. They are kept until it is made, also when their objects are overwritten or removed meanwhile: such a body is then
 * `retained`. Holds last no longer than the process.
 */
export class Holds {
  readonly #writer: Writer
  readonly #objects: Objects
  readonly #blobs: Blobs
  readonly #held = new Map<number, Set<Hold>>()
  readonly #retain
  readonly #isRetained
  readonly #page
  readonly #forget

  constructor(db: Database, writer: Writer, objects: Objects, blobs: Blobs) {
    this.#writer = writer
    this.#objects = objects
    this.#blobs = blobs
    this.#retain = db.prepare('INSERT INTO retained (generation, bucket, body_at) VALUES (?, ?, ?)')
    this.#isRetained = db.prepare('SELECT 1 FROM retained WHERE generation = ?')
    this.#page = db.prepare(
      'SELECT generation, body_at AS bodyAt FROM retained WHERE bucket = ? AND generation > ? ORDER BY generation LIMIT ?',
    )
    this.#forget = db.prepare('DELETE FROM retained WHERE generation = ?')
    // What an earlier process held. The files have no row any more, so the sweep removes them.
    db.exec('DELETE FROM bodies WHERE generation IN (SELECT generation FROM retained); DELETE FROM retained')
  }

  add(bucket: number, hold: Hold): void {
    const holds = this.#held.get(bucket) ?? new Set()
    this.#held.set(bucket, holds.add(hold))
  }

  covers(bucket: number, generation: string): boolean {
    for (const hold of this.#held.get(bucket) ?? []) if (hold.covers(generation)) return true
    return false
  }

  /** True when an overwritten or removed object's body is kept. */
  isRetained(generation: string): boolean {
    return this.#isRetained.get(generation) !== undefined
  }

  /**
   * Decides, inside the transaction that takes the row of a body away, whether the body goes too. True: it does, and a file is to be discarded once that
   * is committed.
   */
  letGo(bucket: number, { generation, bodyAt }: Freed): boolean {
    if (bodyAt === 'network') return false
    if (this.covers(bucket, generation)) {
      this.#retain.run(generation, bucket, bodyAt === 'index' ? 1 : 0)
      return false
    }
    if (bodyAt === 'index') this.#objects.removeBody(generation)
    return bodyAt === 'file'
  }

  /** Ends the claim, and removes what was kept for it alone. */
  async release(bucket: number, hold: Hold): Promise<void> {
    const holds = this.#held.get(bucket)
    holds?.delete(hold)
    if (holds?.size === 0) this.#held.delete(bucket)
    await this.letGoUnheld(bucket)
  }

  /** Removes what is kept of this bucket and nobody claims. */
  async letGoUnheld(bucket: number): Promise<void> {
    let after: string | undefined = ''
    while (after !== undefined) after = await this.#releaseBatch(bucket, after)
  }

  /** The last generation looked at; undefined when there are no more. */
  async #releaseBatch(bucket: number, after: string): Promise<string | undefined> {
    const { rows, files } = await this.#writer.run(() => {
      const rows = this.#page.all(bucket, after, RELEASE_BATCH) as { generation: string; bodyAt: number }[]
      const free = rows.filter(({ generation }) => !this.covers(bucket, generation))
      for (const { generation, bodyAt } of free) {
        this.#forget.run(generation)
        if (bodyAt === 1) this.#objects.removeBody(generation)
      }
      return { rows, files: free.filter(({ bodyAt }) => bodyAt === 0) }
    })
    for (const { generation } of files) this.#blobs.discard(generation)
    return rows.length < RELEASE_BATCH ? undefined : rows.at(-1)?.generation
  }
}
