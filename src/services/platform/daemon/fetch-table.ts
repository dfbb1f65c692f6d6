import type { Database } from '../../database.js'
import type { PlatformDeal } from '../deals/deal-table.js'

/** A deal whose provider shall fetch its CAR. */
export interface DealToFetch extends Pick<PlatformDeal, 'id' | 'task' | 'user' | 'md5' | 'fileSize' | 'fileSourceUrl'> {
  readonly minerId: string
  /** Bytes that an earlier CAR of this deal takes in the folder; null when there is none. */
  readonly stored: number | null
}

/** A CAR in the folder. */
export interface StoredCar {
  readonly id: number
  readonly minerId: string
  /** Bytes that it takes. */
  readonly stored: number
}

/** Which CARs to fetch, and which ones are there. Each look takes a few steps, however many deals wait. */
export class FetchTable {
  readonly #user
  readonly #deal
  readonly #sum
  readonly #isStored
  readonly #superfluous
  readonly #store
  readonly #clear

  constructor(db: Database) {
    const waiting = 'tasks.posted = 1 AND tasks.to_fetch > 0 AND tasks.miner_id = ?1'
    this.#user = db.prepare(`SELECT user FROM tasks WHERE ${waiting} AND user > ?2 ORDER BY user LIMIT 1`)
    this.#deal = db.prepare(`
      SELECT deals.id, deals.task, tasks.user, tasks.miner_id AS minerId, deals.md5, deals.file_size AS fileSize,
        deals.file_source_url AS fileSourceUrl, deals.stored
      FROM tasks CROSS JOIN deals ON deals.task = tasks.id
      WHERE ${waiting} AND tasks.user = ?2 AND tasks.id >= ?3
        AND deals.status IN ('Created', 'Waiting', 'Downloading') AND deals.id > iif(tasks.id = ?3, ?4, 0)
      ORDER BY tasks.id, deals.id LIMIT 1
    `)
    this.#sum = db.prepare('SELECT coalesce(sum(stored), 0) AS sum FROM deals WHERE stored IS NOT NULL')
    this.#isStored = db.prepare('SELECT 1 FROM deals WHERE id = ? AND stored IS NOT NULL')
    this.#superfluous = db.prepare(`
      SELECT deals.id, tasks.miner_id AS minerId, deals.stored FROM deals JOIN tasks ON tasks.id = deals.task
      WHERE deals.id > ? AND deals.stored IS NOT NULL
        AND deals.status IN ('Created', 'Waiting', 'Downloading', 'DownloadFailed', 'ImportFailed', 'DealActive')
      ORDER BY deals.id LIMIT ?
    `)
    this.#store = db.prepare('UPDATE deals SET stored = ? WHERE id = ?')
    this.#clear = db.prepare('UPDATE deals SET stored = NULL WHERE id = ? AND stored IS NOT NULL')
  }

  /** The first user after that one whose deals with this provider have CARs to fetch. */
  userAfter(minerId: string, user: number): number | undefined {
    return this.#user.get(minerId, user)?.user
  }

  /** The first deal to fetch of this user and provider after that one, by task and number. */
  dealAfter(minerId: string, user: number, after: { task: number; id: number }): DealToFetch | undefined {
    return this.#deal.get(minerId, user, after.task, after.id) as DealToFetch | undefined
  }

  /** Bytes that all CARs take. */
  storedBytes(): number {
    return this.#sum.get().sum
  }

  isStored(id: number): boolean {
    return this.#isStored.get(id) !== undefined
  }

  /** CARs that no provider needs any more: it has imported them or given up, or shall fetch them again. */
  superfluousAfter(id: number, most: number): StoredCar[] {
    return this.#superfluous.all(id, most) as StoredCar[]
  }

  /** Call it inside a transaction. */
  store(id: number, bytes: number): void {
    this.#store.run(bytes, id)
  }

  /** Returns false when there was none. Call it inside a transaction. */
  clear(id: number): boolean {
    return Number(this.#clear.run(id).changes) > 0
  }
}
