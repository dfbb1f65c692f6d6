import type { DealToFetch, FetchTable } from './fetch-table.js'

/** Most CARs fetched at the same time. */
const AT_ONCE = 4
/** Most of them for one user: a slow server of one user holds up no other user. */
const OF_USER = 2

const START = { task: 0, id: 0 }

/** Decides which deal is next: users take turns. */
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
    if (this.#full || this.#running.size >= AT_ONCE) return undefined
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
