import { setMaxListeners } from 'node:events'
import type { Logger } from '../../../common/log.js'
import { HOUR_MS, PeriodicTask, withinDeadline } from '../../../common/time.js'
import type { Job } from '../../api/jobs.js'
import type { Lease } from '../../api/locks.js'
import type { JobStore } from './job-store.js'
import { sweepJobs } from './list-jobs.js'
import type { LiveJob } from './live-job.js'
import { hasEnded, type JobRecord, oncePerSignature } from './record.js'
import { type AnyKind, type NextStep, runStep, type StepDeps, type StepOptions } from './step.js'
import type { Waiters } from './waiters.js'

const DEFAULT_CONCURRENCY = 4

/** How long `stop` waits for running jobs, ms: those that have not ended by then continue after the restart. */
const GRACE_MS = 10_000

/** Longest delay of a timer, ms. */
const MAX_TIMER_MS = 2 ** 31 - 1

interface KindQueue {
  readonly kind: AnyKind
  readonly ids: string[]
  working: number
}

interface Work {
  live: LiveJob | undefined
  /** The job was changed meanwhile, so it is scheduled again. */
  again: boolean
}

/** Runs queued jobs, at most `concurrency` per kind. */
export class Workers {
  readonly #deps: Omit<StepDeps, 'stopping'>
  readonly #onFinished: (id: string) => void
  readonly #queues = new Map<string, KindQueue>()
  readonly #queued = new Set<string>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #working = new Map<string, Work>()
  readonly #seen = new Set<string>()
  readonly #stopping = new AbortController()
  #started = false
  #idle: (() => void) | undefined

  /** @param onFinished called when a job has ended here, or was found to have ended elsewhere */
  constructor(deps: Omit<StepDeps, 'stopping'>, onFinished: (id: string) => void) {
    this.#deps = deps
    this.#onFinished = onFinished
    // Each job that waits adds a listener.
    setMaxListeners(0, this.#stopping.signal)
  }

  register(kind: AnyKind): void {
    if (this.#started) throw new Error(`Jobs of the kind "${kind.name}" must be registered before the start`)
    if (this.#queues.has(kind.name)) throw new Error(`Jobs of the kind "${kind.name}" are registered twice`)
    this.#queues.set(kind.name, { kind, ids: [], working: 0 })
  }

  knows(kind: string): boolean {
    return this.#queues.has(kind)
  }

  kind(name: string): AnyKind | undefined {
    return this.#queues.get(name)?.kind
  }

  start(): void {
    this.#started = true
    for (const queue of this.#queues.values()) this.#fill(queue)
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** True while the job runs, is queued or waits for a timer in this process. */
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

  /** Runs a job as soon as its kind has room, whatever timer it was waiting for. */
  schedule(kind: string, id: string): void {
    const queue = this.#queues.get(kind)
    if (!queue || this.stopping.aborted) return
    clearTimeout(this.#timers.get(id))
    this.#timers.delete(id)
    const work = this.#working.get(id)
    if (work) {
      work.again = true
      return
    }
    if (this.#queued.has(id)) return
    this.#queued.add(id)
    queue.ids.push(id)
    this.#fill(queue)
  }

  /** Fires the signal of running jobs and waits for them for GRACE_MS at most. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    for (const live of this.allLive()) live.interrupt('stopping')
    if (this.#working.size === 0) return
    const idle = new Promise<void>((resolve) => {
      this.#idle = resolve
    })
    await withinDeadline(idle, GRACE_MS).catch(() => {})
  }

  #fill(queue: KindQueue): void {
    if (!this.#started || this.stopping.aborted) return
    const { concurrency = DEFAULT_CONCURRENCY } = queue.kind
    while (queue.working < concurrency) {
      const id = queue.ids.shift()
      if (id === undefined) return
      this.#queued.delete(id)
      void this.#work(queue, id)
    }
  }

  async #work(queue: KindQueue, id: string): Promise<void> {
    const work: Work = { live: undefined, again: false }
    this.#working.set(id, work)
    queue.working++
    const next = await runStep({ ...this.#deps, stopping: this.stopping }, queue.kind, id, this.#options(id, work))
    queue.working--
    this.#working.delete(id)
    this.#after(queue, id, work.again ? { againIn: 0 } : next)
    this.#fill(queue)
    if (this.#working.size === 0) this.#idle?.()
  }

  #options(id: string, work: Work): StepOptions {
    const first = !this.#seen.has(id)
    this.#seen.add(id)
    const onLive = (live: LiveJob) => {
      work.live = live
      if (this.stopping.aborted) live.interrupt('stopping')
    }
    return { onLive, first }
  }

  #after({ kind }: KindQueue, id: string, next: NextStep): void {
    if (next === 'finished') {
      this.#seen.delete(id)
      this.#onFinished(id)
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

interface RoundsDeps {
  readonly store: JobStore
  readonly workers: Workers
  readonly held: HeldJobs
  readonly log: Logger
  readonly now: () => number
  /** True if other processes use the same records. */
  readonly shared: boolean
  /** See JobsOptions. */
  readonly expiryMs: number
}

/** Interval at which a proxy on a shared state looks for jobs that others have created, left or cancelled, ms. */
const LOOK_MS = 10_000

export class Rounds {
  readonly #deps: RoundsDeps
  readonly #tasks: PeriodicTask[] = []
  /** Kinds of jobs that no loaded plugin can run; each is logged once. */
  readonly #orphaned = new Set<string>()

  constructor(deps: RoundsDeps) {
    this.#deps = deps
  }

  start(): void {
    const { shared, expiryMs, store, workers, log, now } = this.#deps
    if (shared) this.#every(LOOK_MS, 'looking for jobs', () => this.#look())
    if (expiryMs > 0)
      this.#every(HOUR_MS, 'removing old jobs', () => sweepJobs(store, now() - expiryMs, workers.stopping, log))
  }

  async stop(): Promise<void> {
    for (const task of this.#tasks) await task.stop()
  }

  /** Schedules every job that has not ended and that this process is not running or holding. */
  scheduleAll(): void {
    const { store, workers, held, log } = this.#deps
    for (const [id, { kind, end }] of store.index.oldestFirst()) {
      if (end || workers.has(id) || held.has(id)) continue
      if (workers.knows(kind)) workers.schedule(kind, id)
      else if (!this.#orphaned.has(kind)) {
        this.#orphaned.add(kind)
        log.warn({ kind }, 'jobs are waiting for a plugin that is not loaded')
      }
    }
  }

  /**
   * On a shared state: picks up jobs that other proxies left, and interrupts those that they took over or cancelled.
   */
  async #look(): Promise<void> {
    const { store, workers } = this.#deps
    await store.refresh()
    this.scheduleAll()
    for (const live of workers.allLive()) {
      live.checkClaim()
      const record = await store.read(live.job.id)
      if (record?.job.status === 'Cancelling') live.interrupt('cancelled')
    }
  }

  #every(intervalMs: number, what: string, run: () => Promise<unknown>): void {
    const { log } = this.#deps
    const task = new PeriodicTask(run, (err) => log.error({ err }, `${what} failed and will be retried`))
    task.start(intervalMs)
    this.#tasks.push(task)
  }
}

interface OrdersDeps {
  readonly store: JobStore
  readonly workers: Workers
  readonly held: HeldJobs
  readonly waiters: Waiters
  readonly now: () => number
}

type Change = (record: JobRecord) => JobRecord

/** Changes of jobs on request, and what follows from their new states. */
export class Orders {
  readonly #deps: OrdersDeps

  constructor(deps: OrdersDeps) {
    this.#deps = deps
  }

  /** Changes a job, then releases its lease, notifies its waiters or schedules it, as its new state requires. */
  async update(id: string, to: Change): Promise<Job> {
    return this.#changed(await this.#deps.store.change(id, to))
  }

  /** Does what `update` does, for a request: a signature counts once, also when the change is refused. */
  async order(id: string, signature: string | undefined, to: Change): Promise<Job> {
    if (signature === undefined) return this.update(id, to)
    const { store, now } = this.#deps
    let refusal: unknown
    const attempt = (record: JobRecord) => {
      try {
        return to(record)
      } catch (error) {
        refusal = error
        return record
      }
    }
    const record = await store.change(id, (present) => {
      refusal = undefined
      return oncePerSignature(present, signature, now(), attempt)
    })
    if (refusal !== undefined) throw refusal
    return this.#changed(record)
  }

  async #changed(record: JobRecord): Promise<Job> {
    const { held, waiters, workers } = this.#deps
    const { job } = record
    if (!record.held) await held.remove(job.id)
    if (hasEnded(job.status)) waiters.notify(job.id)
    else if (!record.held) workers.schedule(job.operation, job.id)
    return job
  }
}

/** Leases of the held jobs that this process created: no other process decides about them. */
export class HeldJobs {
  readonly #leases = new Map<string, Lease>()

  add(id: string, lease: Lease): void {
    this.#leases.set(id, lease)
  }

  has(id: string): boolean {
    return this.#leases.has(id)
  }

  async remove(id: string): Promise<void> {
    const lease = this.#leases.get(id)
    this.#leases.delete(id)
    await lease?.release()
  }

  async removeAll(): Promise<void> {
    for (const id of [...this.#leases.keys()]) await this.remove(id)
  }
}
