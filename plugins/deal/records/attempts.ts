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
  begin(attempt: Attempt): Promise<void> {
    return this.#alone(attempt, async (change) => {
      await this.#attempts.set(attempt.jobId, attempt)
      await change((jobs) => [...jobs.filter((id) => id !== attempt.jobId), attempt.jobId])
    })
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
    return this.#alone(attempt, (change) => change(without(attempt)))
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
    const isOver = async (jobId: string) => {
      const job = await jobs.get(jobId)
      return !job || ['Complete', 'Failed', 'Cancelled'].includes(job.status)
    }
    for await (const [jobId, attempt] of this.#attempts.entries()) {
      if (!(await isOver(jobId))) continue
      await this.#alone(attempt, async (change) => {
        // Somebody may have the job run again: without its new attempt, a deal that it made would not be looked for.
        if ((await this.get(jobId))?.sent !== attempt.sent || !(await isOver(jobId))) return
        await this.#attempts.delete(jobId)
        await change(without(attempt))
      })
    }
  }

  /** One at a time for a subject. `change` changes which jobs are under way about it. */
  #alone(attempt: Attempt, run: (change: (to: Change) => Promise<void>) => Promise<void>): Promise<void> {
    const name = subjectOf(attempt)
    const change = async (to: Change) => {
      const before = (await this.#underWay.get(name)) ?? []
      const after = to(before)
      if (after.length > 0) await this.#underWay.set(name, after)
      else if (before.length > 0) await this.#underWay.delete(name)
    }
    return this.#locks.withName(`deal-attempts/${name}`, () => run(change))
  }
}

type Change = (jobs: readonly string[]) => readonly string[]

function without({ jobId }: Attempt): Change {
  return (jobs) => jobs.filter((id) => id !== jobId)
}

function subjectOf({ bucket, key }: Attempt): string {
  return createHash('sha256')
    .update(key === undefined ? bucket : `${bucket}\0${key}`)
    .digest('base64url')
}
