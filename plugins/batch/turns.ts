/** A task that has had its turn for so long does not keep others from theirs, ms. */
const TURN_MS = 5000

/** The task that asks for a turn. */
interface TurnRequest {
  /** Key pair: those that wait have turns in rotation. */
  readonly owner: string
  /** Among the jobs of the owner, the highest is next. */
  readonly priority: () => number
  readonly signal: AbortSignal
  /** Called if others have the turns. */
  readonly onWait: () => void
}

interface WaitingRequest extends Pick<TurnRequest, 'owner' | 'priority'> {
  readonly begin: (leave: () => void) => void
}

interface Bounds {
  /** Tasks that work at the same time. */
  readonly most: number
  /** Tasks that work besides, because they take long while others wait. An owner may have half of them, and `most`. */
  readonly mostLong: number
  readonly turnMs?: number
}

/** Lets some tasks of the jobs of a process work at a time. */
export class Turns {
  readonly #bounds: Required<Bounds>
  readonly #waiting: WaitingRequest[] = []
  /** Tasks that have a turn, by the time since when, ms; the first is the oldest. */
  readonly #having = new Map<object, number>()
  #long = 0
  /** Number of the tasks that work, by owner. */
  readonly #working = new Map<string, number>()
  /** Number of the last turn of each owner that has had one. */
  readonly #last = new Map<string, number>()
  #count = 0
  #timer: NodeJS.Timeout | undefined

  constructor(bounds: Bounds) {
    this.#bounds = { turnMs: TURN_MS, ...bounds }
  }

  /** Waits for a turn. Resolves to what ends it. */
  async enter({ owner, priority, signal, onWait }: TurnRequest): Promise<() => void> {
    // Tasks that wait begin as soon as a turn is free for their owner, so this one overtakes none.
    if (this.#having.size < this.#bounds.most && this.#mayWork(owner)) return this.#begin(owner)
    onWait()
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const waiting: WaitingRequest = {
        ...{ owner, priority },
        begin: (leave) => {
          signal.removeEventListener('abort', giveUp)
          resolve(leave)
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
      this.#serve()
    })
  }

  #begin(owner: string): () => void {
    const turn = {}
    this.#having.set(turn, performance.now())
    this.#last.set(owner, ++this.#count)
    this.#working.set(owner, (this.#working.get(owner) ?? 0) + 1)
    let ended = false
    return () => {
      if (ended) return
      ended = true
      if (!this.#having.delete(turn)) this.#long--
      const others = (this.#working.get(owner) ?? 0) - 1
      if (others > 0) this.#working.set(owner, others)
      else this.#working.delete(owner)
      this.#serve()
    }
  }

  /** Tasks of one owner that all take long leave turns to others. */
  #mayWork(owner: string): boolean {
    const { most, mostLong } = this.#bounds
    return (this.#working.get(owner) ?? 0) < most + mostLong / 2
  }

  /** Gives the turns that are free, or that others have had for long, to those that wait. */
  #serve(): void {
    clearTimeout(this.#timer)
    for (;;) {
      const waiting = this.#waiting.filter(({ owner }) => this.#mayWork(owner))
      if (waiting.length === 0) return
      const { most, mostLong, turnMs } = this.#bounds
      if (this.#having.size >= most) {
        const [oldest, since] = this.#having.entries().next().value ?? []
        if (oldest === undefined || since === undefined || this.#long >= mostLong) return
        const left = since + turnMs - performance.now()
        if (left > 0) {
          this.#timer = setTimeout(() => this.#serve(), left).unref()
          return
        }
        this.#having.delete(oldest)
        this.#long++
      }
      const next = waiting.reduce((best, one) => (this.#isBefore(one, best) ? one : best))
      this.#waiting.splice(this.#waiting.indexOf(next), 1)
      next.begin(this.#begin(next.owner))
    }
  }

  #isBefore(one: WaitingRequest, other: WaitingRequest): boolean {
    if (one.owner === other.owner) return one.priority() > other.priority()
    return (this.#last.get(one.owner) ?? 0) < (this.#last.get(other.owner) ?? 0)
  }
}
