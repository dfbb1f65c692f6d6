import { type Bodies, generationOf, type StoredBody } from '../../store/bodies.js'
import { type Connection, type Database, statements } from '../../store/database.js'
import { type Freed, type Objects, storedBodyOf } from './objects.js'

/** What tells which generations a deal reads. */
interface HeldFiles {
  has(deal: number, generation: string): Promise<boolean>
}

interface HoldTables {
  readonly manifest: HeldFiles
}

export interface Hold {
  covers(tables: HoldTables, generation: string): Promise<boolean>
}

const RELEASE_BATCH = 500

type RetainedRow = Omit<Freed, 'bodyAt'> & { readonly bodyAt: number }

/** The table of bodies without an object that a pending deal still reads. Call writing methods inside a transaction. */
export class RetainedBodies {
  readonly #sql

  constructor(connection: Connection) {
    this.#sql = statements(connection, {
      add: 'INSERT INTO retained (generation, bucket, body_at, account, bytes, body_name, body_mark) VALUES (?1, ?2, ?3, (SELECT owner FROM buckets WHERE id = ?2), ?4, ?5, ?6)',
      find: 'SELECT coalesce(body_name, generation) AS name, bytes AS size, body_mark AS mark FROM retained WHERE generation = ? AND body_at = 0',
      page: 'SELECT generation, body_at AS "bodyAt", coalesce(body_name, generation) AS "bodyName", bytes AS size, body_mark AS "bodyMark" FROM retained WHERE bucket = ? AND generation > ? ORDER BY generation LIMIT ?',
      forget: 'DELETE FROM retained WHERE generation = ?',
      forgetBodies: 'DELETE FROM bodies WHERE generation IN (SELECT generation FROM retained)',
      forgetAll: 'DELETE FROM retained',
    })
  }

  async add(bucket: number, { generation, bodyAt, size, bodyName, bodyMark }: Freed): Promise<void> {
    await this.#sql.add.run(generation, bucket, bodyAt === 'index' ? 1 : 0, size, bodyName, bodyMark)
  }

  /** The body of an overwritten or removed object that is kept, unless it is in the index. */
  find(generation: string): Promise<StoredBody | undefined> {
    return this.#sql.find.get<StoredBody>(generation)
  }

  page(bucket: number, after: string, limit: number): Promise<RetainedRow[]> {
    return this.#sql.page.all<RetainedRow>(bucket, after, limit)
  }

  async forget(generation: string): Promise<void> {
    await this.#sql.forget.run(generation)
  }

  async forgetAll(): Promise<void> {
    await this.#sql.forgetBodies.run()
    await this.#sql.forgetAll.run()
  }

  async namesBody(name: string): Promise<boolean> {
    return (await this.find(generationOf(name)))?.name === name
  }
}

interface LetGoTables extends HoldTables {
  readonly objects: Objects
  readonly retained: RetainedBodies
}

/**
 * Bodies that a pending deal reads. They are kept until the deal is made, even when their objects are overwritten or
 * removed meanwhile: such a body is then `retained`. Holds end with the process.
 */
export class Holds {
  readonly #db: Database<LetGoTables>
  readonly #bodies: Bodies
  readonly #held = new Map<number, Set<Hold>>()
  /** Changes under way that remove bodies, and may have looked at the holds already. */
  readonly #changes = new Set<Promise<unknown>>()

  constructor(db: Database<LetGoTables>, bodies: Bodies) {
    this.#db = db
    this.#bodies = bodies
  }

  /** Forgets what an earlier process retained. These bodies have no row any more, so the sweep removes them. */
  async begin(): Promise<void> {
    await this.#db.transaction(({ retained }) => retained.forgetAll())
  }

  /**
   * Adds a hold. When the promise resolves, what the database shows of the bucket then has all of its bodies, and keeps
   * them.
   */
  async add(bucket: number, hold: Hold): Promise<void> {
    const holds = this.#held.get(bucket) ?? new Set()
    this.#held.set(bucket, holds.add(hold))
    await this.settled()
  }

  /** Resolves when each change under way has begun after this call: what is committed by now is known to it. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#changes)
  }

  /** Runs a change that calls `letGo`. */
  async during<T>(change: Promise<T>): Promise<T> {
    this.#changes.add(change)
    try {
      return await change
    } finally {
      this.#changes.delete(change)
    }
  }

  async covers(tables: HoldTables, bucket: number, generation: string): Promise<boolean> {
    for (const hold of this.#held.get(bucket) ?? []) if (await hold.covers(tables, generation)) return true
    return false
  }

  /**
   * Decides, inside the transaction that removes the row of a body, whether the body is removed too. Resolves with true
   * when it is: the caller then discards it from `Bodies` once the transaction is committed.
   */
  async letGo(tables: LetGoTables, bucket: number, freed: Freed): Promise<boolean> {
    const { generation, bodyAt } = freed
    if (bodyAt === 'network') return false
    if (await this.covers(tables, bucket, generation)) {
      await tables.retained.add(bucket, freed)
      return false
    }
    if (bodyAt === 'index') await tables.objects.removeBody(generation)
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
    // Changes under way may yet retain bodies for a hold that has ended.
    await this.settled()
    let after: string | undefined = ''
    while (after !== undefined) after = await this.#releaseBatch(bucket, after)
  }

  /** Returns the last generation examined, or undefined when there are no more. */
  async #releaseBatch(bucket: number, after: string): Promise<string | undefined> {
    const release = async (tables: LetGoTables) => {
      const rows = await tables.retained.page(bucket, after, RELEASE_BATCH)
      const stored: RetainedRow[] = []
      for (const row of rows) {
        const { generation, bodyAt } = row
        if (await this.covers(tables, bucket, generation)) continue
        await tables.retained.forget(generation)
        if (bodyAt === 1) await tables.objects.removeBody(generation)
        else stored.push(row)
      }
      return { rows, stored }
    }
    // Each statement sees what is committed: a hold may cover what another transaction has just added to its deal.
    const { rows, stored } = await this.during(this.#db.transaction(release, { locks: [] }))
    for (const row of stored) this.#bodies.discard(storedBodyOf(row))
    return rows.length < RELEASE_BATCH ? undefined : rows.at(-1)?.generation
  }
}
