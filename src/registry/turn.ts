import { Overdue } from '../common/deadline.js'

/**
 * A time limit for somebody who has the word only now and then: it counts while it is his turn, from the start each time, and not while he waits for others.
 * To be ended.
 */
export class Turn {
  readonly #timer: NodeJS.Timeout
  readonly #late = new AbortController()
  readonly #over: Promise<never>
  #others = 0
  #ended = false

  constructor(ms: number) {
    this.#timer = setTimeout(() => {
      if (this.#others > 0) this.#timer.refresh()
      else this.#late.abort(new Overdue(ms))
    }, ms)
    this.#over = new Promise((_, reject) => {
      this.#late.signal.addEventListener('abort', () => reject(this.#late.signal.reason), { once: true })
    })
    this.#over.catch(() => {})
  }

  /** Fires when the time is over. */
  get signal(): AbortSignal {
    return this.#late.signal
  }

  /** Settles as the work does, or rejects when the time is over. */
  race<T>(work: T | Promise<T>): Promise<T> {
    return Promise.race([work, this.#over])
  }

  /** Somebody else is waited for, until `back`. */
  away(): void {
    this.#others++
  }

  back(): void {
    this.#others--
    if (!this.#ended && !this.#late.signal.aborted) this.#timer.refresh()
  }

  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
  }
}
