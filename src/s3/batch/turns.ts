import { setTimeout as sleep } from 'node:timers/promises'
import { TokenBuckets } from '../../common/client-rate.js'

/** Time for which a turn is not taken from a job while others wait, ms. */
const TURN_MS = 5000

/** Who asks for a turn. */
export interface Player {
  /** Key pair: those that wait have turns in rotation. */
  readonly owner: string
  /** Among the jobs of the owner, the highest is next. */
  readonly priority: () => number
  readonly signal: AbortSignal
  /** Called if others have the turns. */
  readonly onWait: () => void
}

interface Waiting extends Pick<Player, 'owner' | 'priority'> {
  readonly begin: () => void
}

/** A job may work, until `leave`. */
export interface Turn {
  /** To be awaited before each piece of work: waits for another turn if others have waited for this one for a while. */
  renew(): Promise<void>
  leave(): void
}

/** Lets some jobs of a process work at a time. */
export class Turns {
  #free: number
  readonly #waiting: Waiting[] = []
  /** By owner that has had a turn: the number of its last one. */
  readonly #last = new Map<string, number>()
  #count = 0
  readonly #now: () => number

  /**
   * @param most jobs that work at the same time
   * @param now ms, of a clock that is not set
   */
  constructor(most: number, now = () => performance.now()) {
    this.#free = most
    this.#now = now
  }

  /** Waits for a turn. */
  async enter(player: Player): Promise<Turn> {
    await this.#take(player)
    let since = this.#now()
    let entering: Promise<void> | undefined
    let has = true
    const leave = () => {
      if (has) this.#leave()
      has = false
    }
    const again = async () => {
      leave()
      await this.#take(player)
      has = true
      since = this.#now()
    }
    return {
      leave,
      renew: async () => {
        if (!entering && this.#waiting.length > 0 && this.#now() - since >= TURN_MS)
          entering = again().finally(() => {
            entering = undefined
          })
        await entering
      },
    }
  }

  async #take({ owner, priority, signal, onWait }: Player): Promise<void> {
    if (this.#free > 0) {
      // Those that wait have begun as soon as a turn was free.
      this.#begin(owner)
      return
    }
    onWait()
    await new Promise<void>((resolve, reject) => {
      signal.throwIfAborted()
      const waiting: Waiting = {
        ...{ owner, priority },
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
    })
  }

  #begin(owner: string): void {
    this.#free--
    this.#last.set(owner, ++this.#count)
  }

  #leave(): void {
    this.#free++
    const next = this.#waiting.reduce<Waiting | undefined>(
      (best, one) => (best && !this.#isBefore(one, best) ? best : one),
      undefined,
    )
    if (!next) return
    this.#waiting.splice(this.#waiting.indexOf(next), 1)
    this.#begin(next.owner)
    next.begin()
  }

  #isBefore(one: Waiting, other: Waiting): boolean {
    if (one.owner === other.owner) return one.priority() > other.priority()
    return (this.#last.get(one.owner) ?? 0) < (this.#last.get(other.owner) ?? 0)
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
