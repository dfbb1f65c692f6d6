/** Lets a limited number of jobs run at a time, in the order they came. */
export class Turns {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  /** Runs the job when it is its turn. Rejects with the signal's reason when that comes first: the job then does not run at all. */
  async run<T>(job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#turn(signal)
    try {
      return await job()
    } finally {
      this.#free++
      this.#next()
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#waiting.delete(go)
        reject(signal.reason)
      }
      const go = (): void => {
        signal.removeEventListener('abort', abort)
        resolve()
      }
      if (signal.aborted) return reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      this.#waiting.add(go)
      this.#next()
    })
  }

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined || this.#free === 0) return
    this.#free--
    this.#waiting.delete(first)
    first()
  }
}
