import { type Database, statements, type Writer } from '../../database.js'
import { type Bodies, generationOf, type StoredBody } from '../../store/bodies.js'
import { type Freed, type Objects, storedBodyOf } from './objects.js'

export interface Hold {
  covers(generation: string): boolean
}

const RELEASE_BATCH = 500

type RetainedRow = Omit<Freed, 'bodyAt'> & { readonly bodyAt: number }

/**
 * Bodies that a pending deal reads. They are kept until the deal is made, even when their objects are overwritten or
 * removed meanwhile: such a body is then `retained`. Holds end with the process.
 */
export class Holds {
  readonly #writer: Writer
  readonly #objects: Objects
  readonly #bodies: Bodies
  readonly #held = new Map<number, Set<Hold>>()
  readonly #sql

  constructor(db: Database, writer: Writer, objects: Objects, bodies: Bodies) {
    this.#writer = writer
    this.#objects = objects
    this.#bodies = bodies
    this.#sql = statements(db, {
      retain:
        'INSERT INTO retained (generation, bucket, body_at, account, bytes, body_name, body_mark) VALUES (?1, ?2, ?3, (SELECT owner FROM buckets WHERE id = ?2), ?4, ?5, ?6)',
      retained:
        'SELECT coalesce(body_name, generation) AS name, bytes AS size, body_mark AS mark FROM retained WHERE generation = ? AND body_at = 0',
      page: 'SELECT generation, body_at AS bodyAt, coalesce(body_name, generation) AS bodyName, bytes AS size, body_mark AS bodyMark FROM retained WHERE bucket = ? AND generation > ? ORDER BY generation LIMIT ?',
      forget: 'DELETE FROM retained WHERE generation = ?',
    })
    // Bodies that an earlier process retained. They have no row any more, so the sweep removes them.
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

  /** The body of an overwritten or removed object that is kept, unless it is in the index. */
  retained(generation: string): StoredBody | undefined {
    return this.#sql.retained.get(generation)
  }

  namesBody(name: string): boolean {
    return this.retained(generationOf(name))?.name === name
  }

  /**
   * Decides, inside the transaction that removes the row of a body, whether the body is removed too. Returns true when
   * it is: the caller then discards it from `Bodies` once the transaction is committed.
   */
  letGo(bucket: number, { generation, bodyAt, size, bodyName, bodyMark }: Freed): boolean {
    if (bodyAt === 'network') return false
    if (this.covers(bucket, generation)) {
      this.#sql.retain.run(generation, bucket, bodyAt === 'index' ? 1 : 0, size, bodyName, bodyMark)
      return false
    }
    if (bodyAt === 'index') this.#objects.removeBody(generation)
    return bodyAt === 'file'
  }

  /** Ends the hold and removes the bodies that were retained for it alone. */
  async release(bucket: number, hold: Hold): Promise<void> {
    const holds = this.#held.get(bucket)
    holds?.delete(hold)
    if (holds?.size === 0) this.#held.delete(bucket)
    await this.letGoUnheld(bucket)
  }

  /** Removes the retained bodies of this bucket that no hold needs. */
  async letGoUnheld(bucket: number): Promise<void> {
    let after: string | undefined = ''
    while (after !== undefined) after = await this.#releaseBatch(bucket, after)
  }

  /** Returns the last generation examined, or undefined when there are no more. */
  async #releaseBatch(bucket: number, after: string): Promise<string | undefined> {
    const { rows, stored } = await this.#writer.run(() => {
      const rows = this.#sql.page.all(bucket, after, RELEASE_BATCH) as RetainedRow[]
      const free = rows.filter(({ generation }) => !this.covers(bucket, generation))
      for (const { generation, bodyAt } of free) {
        this.#sql.forget.run(generation)
        if (bodyAt === 1) this.#objects.removeBody(generation)
      }
      return { rows, stored: free.filter(({ bodyAt }) => bodyAt === 0) }
    })
    for (const row of stored) this.#bodies.discard(storedBodyOf(row))
    return rows.length < RELEASE_BATCH ? undefined : rows.at(-1)?.generation
  }
}
