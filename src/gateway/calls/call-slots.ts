import { timedOut, unavailable } from '../errors.js'

/** Runs a bounded number of calls at a time, first in, first out. */
export class CallSlots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** Calls that wait for a slot. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * @param what names the call in errors
   * @throws S3Error ServiceUnavailable when no slot becomes free in time; the call was not sent then
   */
  async run<T>(what: string, timeoutMs: number, call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#slot(what, timeoutMs)
    try {
      return await call()
    } finally {
      this.#release()
    }
  }

  #slot(what: string, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(begin)
        reject(unavailable(timedOut(what)))
      }, timeoutMs)
      this.#waiting.add(begin)
    })
  }

  /** A waiting call takes the slot over. */
  #release(): void {
    const [next] = this.#waiting
    if (!next) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
