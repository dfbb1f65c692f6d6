import { type Connection, statements } from '../../store/database.js'
import type { PlatformDeal } from '../tasks/deal-table.js'

/** Most CARs fetched at the same time. */
const MAX_CONCURRENCY = 4

/** Most of them for one user: a slow server of one user holds up no other user. */
const MAX_OF_USER = 2

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

  /**
   * Begins with a deal: call `end` for it. Undefined when none can begin now. Await one call before the next, and
   * before `restart`.
   */
  async take(): Promise<DealToFetch | undefined> {
    if (this.#full || this.#running.size >= MAX_CONCURRENCY) return undefined
    return (await this.#takeBetween(this.#last, Number.POSITIVE_INFINITY)) ?? this.#takeBetween(0, this.#last)
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
  async #takeBetween(after: number, last: number): Promise<DealToFetch | undefined> {
    let user = await this.#userAfter(after)
    for (; user !== undefined && user <= last; user = await this.#userAfter(user)) {
      const deal = this.#mayBegin(user) ? await this.#dealOf(user) : undefined
      if (deal === undefined) continue
      this.#last = user
      this.#running.set(deal.id, user)
      return deal
    }
    return undefined
  }

  async #userAfter(user: number): Promise<number | undefined> {
    const users = await Promise.all(this.#providers.map((minerId) => this.#table.userAfter(minerId, user)))
    const least = Math.min(...users.map((one) => one ?? Number.POSITIVE_INFINITY))
    return Number.isFinite(least) ? least : undefined
  }

  #mayBegin(user: number): boolean {
    return !this.#paused.has(user) && [...this.#running.values()].filter((one) => one === user).length < MAX_OF_USER
  }

  async #dealOf(user: number): Promise<DealToFetch | undefined> {
    for (const minerId of this.#providers) {
      const key = `${user} ${minerId}`
      for (;;) {
        const deal = await this.#table.dealAfter(minerId, user, this.#begun.get(key) ?? START)
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

/** The CARs to fetch, and those that are there. Each look takes a few steps, however many deals wait. */
export class FetchTable {
  readonly #sql

  constructor(connection: Connection) {
    const superfluous = "'Created', 'Waiting', 'Downloading', 'DownloadFailed', 'ImportFailed', 'DealActive'"
    const waiting = 'tasks.posted = 1 AND tasks.to_fetch > 0 AND tasks.miner_id = ?1'
    this.#sql = statements(connection, {
      user: `SELECT "user" FROM tasks WHERE ${waiting} AND "user" > ?2 ORDER BY "user" LIMIT 1`,
      deal: `
      SELECT deals.id, deals.task, tasks."user", tasks.miner_id AS "minerId", deals.md5, deals.file_size AS "fileSize",
        deals.file_source_url AS "fileSourceUrl", deals.stored
      FROM tasks CROSS JOIN deals
      WHERE deals.task = tasks.id AND ${waiting} AND tasks."user" = ?2 AND tasks.id >= ?3
        AND deals.status IN ('Created', 'Waiting', 'Downloading')
        AND deals.id > CASE WHEN tasks.id = ?3 THEN ?4 ELSE 0 END
      ORDER BY tasks.id, deals.id LIMIT 1
    `,
      sum: 'SELECT coalesce(sum(stored), 0) AS sum FROM deals WHERE stored IS NOT NULL',
      isStored: 'SELECT 1 FROM deals WHERE id = ? AND stored IS NOT NULL',
      superfluous: `
      SELECT deals.id, tasks.miner_id AS "minerId", deals.stored FROM deals JOIN tasks ON tasks.id = deals.task
      WHERE deals.id > ? AND deals.stored IS NOT NULL AND deals.status IN (${superfluous})
      ORDER BY deals.id LIMIT ?
    `,
      store: 'UPDATE deals SET stored = ? WHERE id = ?',
      clear: `UPDATE deals SET stored = NULL WHERE id = ? AND stored = ? AND status IN (${superfluous})`,
    })
  }

  /** The first user after that one whose deals with this provider have CARs to fetch. */
  async userAfter(minerId: string, user: number): Promise<number | undefined> {
    return (await this.#sql.user.get<{ user: number }>(minerId, user))?.user
  }

  /** The first deal to fetch of this user and provider after that one, by task and number. */
  dealAfter(minerId: string, user: number, after: { task: number; id: number }): Promise<DealToFetch | undefined> {
    return this.#sql.deal.get<DealToFetch>(minerId, user, after.task, after.id)
  }

  async storedBytes(): Promise<number> {
    return (await this.#sql.sum.get<{ sum: number }>())?.sum ?? 0
  }

  async isStored(id: number): Promise<boolean> {
    return (await this.#sql.isStored.get(id)) !== undefined
  }

  /** CARs that no provider needs any more: it has imported them or given up, or shall fetch them again. */
  superfluousAfter(id: number, most: number): Promise<StoredCar[]> {
    return this.#sql.superfluous.all<StoredCar>(id, most)
  }

  /** Call it inside a transaction. */
  async store(id: number, bytes: number): Promise<void> {
    await this.#sql.store.run(bytes, id)
  }

  /** Returns false when there was none. Call it inside a transaction. */
  async clear(id: number, bytes: number): Promise<boolean> {
    return (await this.#sql.clear.run(id, bytes)) > 0
  }
}
