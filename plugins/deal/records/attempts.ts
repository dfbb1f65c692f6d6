import { createHash } from 'node:crypto'
import type { Jobs } from '../../../src/jobs/job.js'
import type { Records, State } from '../../../src/state/state.js'

/** That a job has asked the gateway for a deal, written before it did. Plain JSON. */
export interface Attempt {
  readonly jobId: string
  readonly bucket: string
  readonly key?: string
  /** Of the object. */
  readonly stamp?: string
  /** ms since 1970. */
  readonly sent: number
  /** True when the gateway knows the request again by the id of the job. */
  readonly withToken: boolean
  /** Otherwise: CIDs of deals on the same terms that its history held before. */
  readonly before: readonly string[]
  /** What came of it, once that is known. */
  readonly dealCid?: string
}

/** Attempts by job, and those that are under way about one subject: a deal that turns up in the history may be the other's. */
export class Attempts {
  readonly #attempts: Records<Attempt>
  /** Ids of jobs by subject. */
  readonly #underWay: Records<readonly string[]>
  readonly #locks: State['locks']

  constructor(state: Pick<State, 'records' | 'locks'>) {
    this.#attempts = state.records('deal-attempts')
    this.#underWay = state.records('deal-attempts-under-way')
    this.#locks = state.locks
  }

  get(jobId: string): Promise<Attempt | undefined> {
    return this.#attempts.get(jobId)
  }

  /** Durable when it resolves: to be awaited before the gateway is asked. */
  async begin(attempt: Attempt): Promise<void> {
    await this.#attempts.set(attempt.jobId, attempt)
    await this.#change(attempt, (jobs) => [...jobs.filter((id) => id !== attempt.jobId), attempt.jobId])
  }

  /** The deal is this one, and remembered. The attempt is kept until the job is over. */
  async succeeded(attempt: Attempt, dealCid: string): Promise<void> {
    await this.#attempts.set(attempt.jobId, { ...attempt, dealCid })
    await this.rested(attempt)
  }

  /** Surely nothing came of it. */
  async failed(attempt: Attempt): Promise<void> {
    await this.#attempts.delete(attempt.jobId)
    await this.rested(attempt)
  }

  /** No answer is waited for any more. */
  rested(attempt: Attempt): Promise<void> {
    return this.#change(attempt, (jobs) => jobs.filter((id) => id !== attempt.jobId))
  }

  /** Other jobs that wait for an answer about the same subject. */
  async others(attempt: Attempt, jobs: Pick<Jobs, 'get'>): Promise<boolean> {
    for (const id of (await this.#underWay.get(subjectOf(attempt))) ?? []) {
      if (id === attempt.jobId) continue
      if ((await jobs.get(id))?.status === 'Active') return true
    }
    return false
  }

  /** Forgets those of jobs that are over. */
  async sweep(jobs: Pick<Jobs, 'get'>): Promise<void> {
    for await (const [jobId, attempt] of this.#attempts.entries()) {
      const job = await jobs.get(jobId)
      if (job && !['Complete', 'Failed', 'Cancelled'].includes(job.status)) continue
      await this.failed(attempt)
    }
  }

  async #change(attempt: Attempt, to: (jobs: readonly string[]) => readonly string[]): Promise<void> {
    const name = subjectOf(attempt)
    await this.#locks.withName(`deal-attempts/${name}`, async () => {
      const before = (await this.#underWay.get(name)) ?? []
      const after = to(before)
      if (after.length > 0) await this.#underWay.set(name, after)
      else if (before.length > 0) await this.#underWay.delete(name)
    })
  }
}

function subjectOf({ bucket, key }: Attempt): string {
  return createHash('sha256')
    .update(key === undefined ? bucket : `${bucket}\0${key}`)
    .digest('base64url')
}
