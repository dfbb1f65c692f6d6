import type { LiveJob } from './live-job.js'
import { type AnyKind, type Next, type TurnOptions, type TurnParts, turn } from './turn.js'

const DEFAULT_CONCURRENCY = 4
/** How long running jobs are waited for at the end, ms: what has not ended by then goes on after the restart. */
const GRACE_MS = 10_000
/** Longest that a timer can be set for, ms. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Jobs of one kind. */
interface Lane {
  readonly kind: AnyKind
  readonly queue: string[]
  working: number
}

interface Work {
  live: LiveJob | undefined
  /** Somebody has changed the job meanwhile: it gets another turn. */
  again: boolean
}

/** Gives jobs their turns, so many of a kind at once as the kind wants. */
export class Workers {
  readonly #parts: Omit<TurnParts, 'stopping'>
  readonly #onSettled: (id: string) => void
  readonly #lanes = new Map<string, Lane>()
  readonly #queued = new Set<string>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #working = new Map<string, Work>()
  readonly #seen = new Set<string>()
  readonly #stopping = new AbortController()
  #started = false
  #idle: (() => void) | undefined

  /** @param onSettled called when a job has ended here, or was found to have ended elsewhere */
  constructor(parts: Omit<TurnParts, 'stopping'>, onSettled: (id: string) => void) {
    this.#parts = parts
    this.#onSettled = onSettled
  }

  register(kind: AnyKind): void {
    if (this.#started) throw new Error(`The kind of jobs "${kind.name}" comes after the start`)
    if (this.#lanes.has(kind.name)) throw new Error(`There are two kinds of jobs named "${kind.name}"`)
    this.#lanes.set(kind.name, { kind, queue: [], working: 0 })
  }

  knows(kind: string): boolean {
    return this.#lanes.has(kind)
  }

  start(): void {
    this.#started = true
    for (const lane of this.#lanes.values()) this.#fill(lane)
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** True while the job has, waits for or will get a turn here. */
  has(id: string): boolean {
    return this.#working.has(id) || this.#queued.has(id) || this.#timers.has(id)
  }

  live(id: string): LiveJob | undefined {
    return this.#working.get(id)?.live
  }

  *allLive(): Generator<LiveJob> {
    for (const { live } of this.#working.values()) if (live) yield live
  }

  working(id: string): boolean {
    return this.#working.has(id)
  }

  /** Gives a job its turn as soon as there is room, whatever it was waiting for. */
  schedule(kind: string, id: string): void {
    const lane = this.#lanes.get(kind)
    if (!lane || this.stopping.aborted) return
    clearTimeout(this.#timers.get(id))
    this.#timers.delete(id)
    const work = this.#working.get(id)
    if (work) {
      work.again = true
      return
    }
    if (this.#queued.has(id)) return
    this.#queued.add(id)
    lane.queue.push(id)
    this.#fill(lane)
  }

  /** Tells what is running by its signal, and waits for it for a while. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    for (const live of this.allLive()) live.interrupt('stopping')
    if (this.#working.size === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GRACE_MS)
      this.#idle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #fill(lane: Lane): void {
    if (!this.#started || this.stopping.aborted) return
    const { concurrency = DEFAULT_CONCURRENCY } = lane.kind
    while (lane.working < concurrency) {
      const id = lane.queue.shift()
      if (id === undefined) return
      this.#queued.delete(id)
      void this.#work(lane, id)
    }
  }

  async #work(lane: Lane, id: string): Promise<void> {
    const work: Work = { live: undefined, again: false }
    this.#working.set(id, work)
    lane.working++
    const next = await turn({ ...this.#parts, stopping: this.stopping }, lane.kind, id, this.#options(id, work))
    lane.working--
    this.#working.delete(id)
    this.#after(lane, id, work.again ? { againIn: 0 } : next)
    this.#fill(lane)
    if (this.#working.size === 0) this.#idle?.()
  }

  #options(id: string, work: Work): TurnOptions {
    const first = !this.#seen.has(id)
    this.#seen.add(id)
    const onLive = (live: LiveJob) => {
      work.live = live
      if (this.stopping.aborted) live.interrupt('stopping')
    }
    return { onLive, first }
  }

  #after({ kind }: Lane, id: string, next: Next): void {
    if (next === 'settled') {
      this.#seen.delete(id)
      this.#onSettled(id)
    } else if (next !== 'elsewhere') this.#later(kind.name, id, next.againIn)
  }

  #later(kind: string, id: string, ms: number): void {
    if (this.stopping.aborted) return
    const wake = () => {
      this.#timers.delete(id)
      this.schedule(kind, id)
    }
    this.#timers.set(id, setTimeout(wake, Math.max(0, Math.min(ms, MAX_TIMER_MS))).unref())
  }
}
