import { type Database, statements } from '../../database.js'
import type { PlatformDeal } from '../tasks/deal-table.js'

/** Most CARs fetched at the same time. */
const MAX_CONCURRENCY = 4

/** Most of them for one user: a slow server of one user holds up no other user. */
const OF_USER = 2

const START = { task: 0, id: 0 }

export class FetchQueue {
  readonly #table: FetchTable
  /** Users of the fetches in progress, by the number of the deal. */
  readonly #running = new Map<number, number>()
  readonly #paused = new Set<number>()
  /** The last deal that was begun, by provider and user. */
  readonly #begun = new Map<string, { readonly task: number; readonly id: number }>()
  #providers: readonly string[] = []
  #full = false
  #last = 0

  constructor(table: FetchTable) {
    this.#table = table
  }

  /** Begins again with all deals of these providers that have no CAR. */
  restart(providers: readonly string[]): void {
    this.#providers = providers
    this.#paused.clear()
    this.#begun.clear()
    this.#full = false
  }

  /** Begins with a deal: call `end` for it. Undefined when none can begin now. */
  take(): DealToFetch | undefined {
    if (this.#full || this.#running.size >= MAX_CONCURRENCY) return undefined
    return this.#takeBetween(this.#last, Number.POSITIVE_INFINITY) ?? this.#takeBetween(0, this.#last)
  }

  end({ id }: DealToFetch): void {
    this.#running.delete(id)
  }

  isRunning(id: number): boolean {
    return this.#running.has(id)
  }

  /** No deal of this user begins until the next `restart`. */
  pause(user: number): void {
    this.#paused.add(user)
  }

  /** No deal begins until the next `restart`. */
  pauseAll(): void {
    this.#full = true
  }

  /** @param after the users after this one, to `last` */
  #takeBetween(after: number, last: number): DealToFetch | undefined {
    for (let user = this.#userAfter(after); user !== undefined && user <= last; user = this.#userAfter(user)) {
      const deal = this.#mayBegin(user) ? this.#dealOf(user) : undefined
      if (deal === undefined) continue
      this.#last = user
      this.#running.set(deal.id, user)
      return deal
    }
    return undefined
  }

  #userAfter(user: number): number | undefined {
    const users = this.#providers.map((minerId) => this.#table.userAfter(minerId, user) ?? Number.POSITIVE_INFINITY)
    const least = Math.min(...users)
    return Number.isFinite(least) ? least : undefined
  }

  #mayBegin(user: number): boolean {
    return !this.#paused.has(user) && [...this.#running.values()].filter((one) => one === user).length < OF_USER
  }

  #dealOf(user: number): DealToFetch | undefined {
    for (const minerId of this.#providers) {
      const key = `${user} ${minerId}`
      for (;;) {
        const deal = this.#table.dealAfter(minerId, user, this.#begun.get(key) ?? START)
        if (deal === undefined) break
        this.#begun.set(key, deal)
        if (!this.#running.has(deal.id)) return deal
      }
    }
    this.pause(user)
    return undefined
  }
}

export interface DealToFetch extends Pick<PlatformDeal, 'id' | 'task' | 'user' | 'md5' | 'fileSize' | 'fileSourceUrl'> {
  readonly minerId: string
  /** Bytes that an earlier CAR of this deal takes in the folder; null when there is none. */
  readonly stored: number | null
}

export interface StoredCar {
  readonly id: number
  readonly minerId: string
  readonly stored: number
}

/** Which CARs to fetch, and which ones are there. Each look takes a few steps, however many deals wait. */
export class FetchTable {
  readonly #sql

  constructor(db: Database) {
    const waiting = 'tasks.posted = 1 AND tasks.to_fetch > 0 AND tasks.miner_id = ?1'
    this.#sql = statements(db, {
      user: `SELECT user FROM tasks WHERE ${waiting} AND user > ?2 ORDER BY user LIMIT 1`,
      deal: `
      SELECT deals.id, deals.task, tasks.user, tasks.miner_id AS minerId, deals.md5, deals.file_size AS fileSize,
        deals.file_source_url AS fileSourceUrl, deals.stored
      FROM tasks CROSS JOIN deals ON deals.task = tasks.id
      WHERE ${waiting} AND tasks.user = ?2 AND tasks.id >= ?3
        AND deals.status IN ('Created', 'Waiting', 'Downloading') AND deals.id > iif(tasks.id = ?3, ?4, 0)
      ORDER BY tasks.id, deals.id LIMIT 1
    `,
      sum: 'SELECT coalesce(sum(stored), 0) AS sum FROM deals WHERE stored IS NOT NULL',
      isStored: 'SELECT 1 FROM deals WHERE id = ? AND stored IS NOT NULL',
      superfluous: `
      SELECT deals.id, tasks.miner_id AS minerId, deals.stored FROM deals JOIN tasks ON tasks.id = deals.task
      WHERE deals.id > ? AND deals.stored IS NOT NULL
        AND deals.status IN ('Created', 'Waiting', 'Downloading', 'DownloadFailed', 'ImportFailed', 'DealActive')
      ORDER BY deals.id LIMIT ?
    `,
      store: 'UPDATE deals SET stored = ? WHERE id = ?',
      clear: 'UPDATE deals SET stored = NULL WHERE id = ? AND stored IS NOT NULL',
    })
  }

  /** The first user after that one whose deals with this provider have CARs to fetch. */
  userAfter(minerId: string, user: number): number | undefined {
    return this.#sql.user.get(minerId, user)?.user
  }

  /** The first deal to fetch of this user and provider after that one, by task and number. */
  dealAfter(minerId: string, user: number, after: { task: number; id: number }): DealToFetch | undefined {
    return this.#sql.deal.get(minerId, user, after.task, after.id) as DealToFetch | undefined
  }

  storedBytes(): number {
    return this.#sql.sum.get().sum
  }

  isStored(id: number): boolean {
    return this.#sql.isStored.get(id) !== undefined
  }

  /** CARs that no provider needs any more: it has imported them or given up, or shall fetch them again. */
  superfluousAfter(id: number, most: number): StoredCar[] {
    return this.#sql.superfluous.all(id, most) as StoredCar[]
  }

  /** Call it inside a transaction. */
  store(id: number, bytes: number): void {
    this.#sql.store.run(bytes, id)
  }

  /** Returns false when there was none. Call it inside a transaction. */
  clear(id: number): boolean {
    return Number(this.#sql.clear.run(id).changes) > 0
  }
}
