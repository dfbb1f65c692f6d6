/** An answer that is asked for once for all who want it at the same time, and cached for a time. */
export class CachedAnswer<T> {
  readonly #validMs: number
  readonly #now: () => number
  #known: { readonly answer: T; readonly promise: Promise<T>; readonly until: number } | undefined
  #pending: Promise<T> | undefined

  /** @param now milliseconds since 1970 */
  constructor(validMs: number, now: () => number) {
    this.#validMs = validMs
    this.#now = now
  }

  /** The last answer, also one that is no longer valid. */
  get last(): T | undefined {
    return this.#known?.answer
  }

  /** The answer that is valid now; undefined if there is none. */
  get valid(): T | undefined {
    return this.#known && this.#now() < this.#known.until ? this.#known.answer : undefined
  }

  /** Calls `ask` unless an answer is valid or under way. Rejects as `ask` does; a failure is not cached. */
  get(ask: () => Promise<T>): Promise<T> {
    if (this.#known && this.#now() < this.#known.until) return this.#known.promise
    this.#pending ??= this.renew(ask).finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  /** Calls `ask` in any case. */
  async renew(ask: () => Promise<T>): Promise<T> {
    const answer = await ask()
    this.#known = { answer, promise: Promise.resolve(answer), until: this.#now() + this.#validMs }
    return answer
  }
}
