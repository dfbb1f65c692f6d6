import type { HeldJobs } from '../held-jobs.js'
import type { Job } from '../job.js'
import type { JobStore } from '../records/job-store.js'
import { hasEnded, type JobRecord, oncePerSignature } from '../records/record.js'
import type { Waiters } from './waiters.js'
import type { Workers } from './workers.js'

export interface OrdersParts {
  readonly store: JobStore
  readonly workers: Workers
  readonly held: HeldJobs
  readonly waiters: Waiters
  /** ms since 1970 */
  readonly now: () => number
}

type Change = (record: JobRecord) => JobRecord

/** Changes of jobs on request, and what follows from their new states. */
export class Orders {
  readonly #parts: OrdersParts

  constructor(parts: OrdersParts) {
    this.#parts = parts
  }

  /** Changes a job, then releases its lease, notifies its waiters or schedules it, as its new state requires. */
  async update(id: string, to: Change): Promise<Job> {
    return this.#changed(await this.#parts.store.change(id, to))
  }

  /** As `update`, for a request: a signature counts once, also when the change is refused. */
  async order(id: string, signature: string | undefined, to: Change): Promise<Job> {
    if (signature === undefined) return this.update(id, to)
    const { store, now } = this.#parts
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
    const { held, waiters, workers } = this.#parts
    const { job } = record
    if (!record.held) await held.remove(job.id)
    if (hasEnded(job.status)) waiters.notify(job.id)
    else if (!record.held) workers.schedule(job.operation, job.id)
    return job
  }
}
