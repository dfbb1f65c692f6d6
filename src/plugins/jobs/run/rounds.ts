import { HOUR_MS } from '../../../common/durations.js'
import type { Logger } from '../../../common/log.js'
import { PeriodicTask } from '../../../common/periodic-task.js'
import type { HeldJobs } from '../held-jobs.js'
import type { JobStore } from '../records/job-store.js'
import { sweepJobs } from '../records/sweep-jobs.js'
import type { Workers } from './workers.js'

export interface RoundsParts {
  readonly store: JobStore
  readonly workers: Workers
  readonly held: HeldJobs
  readonly log: Logger
  /** ms since 1970 */
  readonly now: () => number
  /** True if other processes use the same records. */
  readonly shared: boolean
  /** See JobsOptions. */
  readonly expiryMs: number
}

/** Interval at which a proxy on a shared state looks for jobs that others have created, left or cancelled, ms. */
const LOOK_MS = 10_000

/** What is done for all jobs from time to time. */
export class Rounds {
  readonly #parts: RoundsParts
  readonly #tasks: PeriodicTask[] = []
  /** Kinds of jobs that no loaded plugin can run; each is logged once. */
  readonly #orphaned = new Set<string>()

  constructor(parts: RoundsParts) {
    this.#parts = parts
  }

  start(): void {
    const { shared, expiryMs, store, workers, log, now } = this.#parts
    if (shared) this.#every(LOOK_MS, 'looking for jobs', () => this.#look())
    if (expiryMs > 0)
      this.#every(HOUR_MS, 'removing old jobs', () => sweepJobs(store, now() - expiryMs, workers.stopping, log))
  }

  async stop(): Promise<void> {
    for (const task of this.#tasks) await task.stop()
  }

  /** Schedules every job that has not ended and that this process is not running or holding. */
  scheduleAll(): void {
    const { store, workers, held, log } = this.#parts
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
    const { store, workers } = this.#parts
    await store.refresh()
    this.scheduleAll()
    for (const live of workers.allLive()) {
      live.checkClaim()
      const record = await store.read(live.job.id)
      if (record?.job.status === 'Cancelling') live.interrupt('cancelled')
    }
  }

  #every(intervalMs: number, what: string, run: () => Promise<unknown>): void {
    const { log } = this.#parts
    const task = new PeriodicTask(run, (err) => log.error({ err }, `${what} failed and will be retried`))
    task.start(intervalMs)
    this.#tasks.push(task)
  }
}
