import { setTimeout as sleep } from 'node:timers/promises'
import { TokenBuckets } from '../../common/client-rate.js'

interface Waiting {
  readonly priority: () => number
  readonly begin: () => void
}

/** Lets some jobs of a process work at a time: of those that wait, the one of the highest priority is next. */
export class Turns {
  #free: number
  readonly #waiting: Waiting[] = []

  /** @param most jobs that work at the same time */
  constructor(most: number) {
    this.#free = most
  }

  /**
   * Waits for a turn. To be called before each piece of work, so that another job is not kept waiting for longer.
   * @param onWait called if another job has the turn
   * @returns a function that ends the turn
   */
  async enter(priority: () => number, signal: AbortSignal, onWait: () => void): Promise<() => void> {
    if (this.#free > 0 && !this.#waiting.some((other) => other.priority() > priority())) this.#free--
    else {
      onWait()
      await this.#wait(priority, signal)
    }
    return () => this.#leave()
  }

  async #wait(priority: () => number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      signal.throwIfAborted()
      const waiting: Waiting = {
        priority,
        begin: () => {
          signal.removeEventListener('abort', giveUp)
          resolve()
        },
      }
      const giveUp = () => {
        const at = this.#waiting.indexOf(waiting)
        if (at < 0) return
        this.#waiting.splice(at, 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', giveUp)
      this.#waiting.push(waiting)
      this.#next()
    })
  }

  #leave(): void {
    this.#free++
    this.#next()
  }

  #next(): void {
    while (this.#free > 0 && this.#waiting.length > 0) {
      let best = 0
      for (const [at, one] of this.#waiting.entries())
        if (one.priority() > (this.#waiting[best]?.priority() ?? 0)) best = at
      const [next] = this.#waiting.splice(best, 1)
      this.#free--
      next?.begin()
    }
  }
}

/** Bounds the requests per second, of all jobs of a process together and of one. */
export class Pace {
  readonly #buckets: TokenBuckets

  constructor(perSecond: number) {
    this.#buckets = new TokenBuckets({ perSecond, burst: perSecond })
  }

  /** Waits until another request may begin. */
  async next(signal: AbortSignal): Promise<void> {
    const wait = this.#buckets.wait('', 1)
    // Taken at once, so that those who wait do not begin together.
    this.#buckets.take('', 1)
    if (wait > 0) await sleep(wait * 1000, undefined, { signal })
  }
}
