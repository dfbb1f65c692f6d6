import { createHash } from 'node:crypto'
import { type Jobs, type Locks, type PluginState, type Records, renamedMember } from 'dealgate/plugin'

/** A request of a job for its deal, recorded before it is sent. Plain JSON. */
export interface Attempt {
  readonly jobId: string
  readonly bucket: string
  readonly key?: string
  readonly revision?: string
  /** ms since 1970. */
  readonly sent: number
  /** True when the gateway recognises a repeated request by its token. */
  readonly withToken: boolean
  /** The token. Absent in records of earlier versions, which sent the id of the job. */
  readonly token?: string
  /** Without client tokens: CIDs of deals on the same terms that the history held before. */
  readonly before: readonly string[]
  /** CID of the deal that was made, once known. */
  readonly dealCid?: string
}

/** The token that the gateway knows the attempt by. */
export function tokenOf({ token, jobId }: Pick<Attempt, 'token' | 'jobId'>): string {
  return token ?? jobId
}

/**
 * Attempts by job, and the attempts under way for each subject: a new deal in the history may belong to any of these.
 */
export class Attempts {
  readonly #attempts: Records<Attempt>
  /** Ids of jobs by subject. */
  readonly #underWay: Records<readonly string[]>
  readonly #locks: Locks

  constructor(state: Pick<PluginState, 'records' | 'locks'>) {
    this.#attempts = renamedMember(state.records('deal-attempts'), 'revision', 'stamp')
    this.#underWay = state.records('deal-attempts-under-way')
    this.#locks = state.locks
  }

  get(jobId: string): Promise<Attempt | undefined> {
    return this.#attempts.get(jobId)
  }

  async tokens(): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    for await (const [, attempt] of this.#attempts.entries()) found.add(tokenOf(attempt))
    return found
  }

  /** Records an attempt. Durable when it resolves: to be awaited before the gateway is asked. */
  begin(attempt: Attempt): Promise<void> {
    return this.#alone(attempt, async (change) => {
      await this.#attempts.set(attempt.jobId, attempt)
      await change((jobs) => [...jobs.filter((id) => id !== attempt.jobId), attempt.jobId])
    })
  }

  /** Records the deal that was made. The attempt is kept until the job has ended. */
  async succeeded(attempt: Attempt, dealCid: string): Promise<void> {
    await this.#attempts.set(attempt.jobId, { ...attempt, dealCid })
    await this.rested(attempt)
  }

  /** Removes an attempt that certainly made no deal. */
  async failed(attempt: Attempt): Promise<void> {
    await this.#attempts.delete(attempt.jobId)
    await this.rested(attempt)
  }

  /** Ends the wait for an answer. */
  rested(attempt: Attempt): Promise<void> {
    return this.#alone(attempt, (change) => change(without(attempt)))
  }

  /** True when another job waits for an answer about the same subject. */
  async others(attempt: Attempt, jobs: Pick<Jobs, 'get'>): Promise<boolean> {
    for (const id of (await this.#underWay.get(subjectOf(attempt))) ?? []) {
      if (id === attempt.jobId) continue
      if ((await jobs.get(id))?.status === 'Active') return true
    }
    return false
  }

  /**
   * Removes the attempts of jobs that have ended. The attempt of a cancelled job is kept with the job, because its deal
   * may have been made after all.
   */
  async sweep(jobs: Pick<Jobs, 'get'>): Promise<void> {
    const isOver = async (jobId: string) => {
      const job = await jobs.get(jobId)
      return !job || job.status === 'Complete' || job.status === 'Failed'
    }
    for await (const [jobId, attempt] of this.#attempts.entries()) {
      if (!(await isOver(jobId))) continue
      await this.#alone(attempt, async (change) => {
        // An operator may retry the job meanwhile: without its new attempt, a deal that it made would never be found.
        if ((await this.get(jobId))?.sent !== attempt.sent || !(await isOver(jobId))) return
        await this.#attempts.delete(jobId)
        await change(without(attempt))
      })
    }
  }

  /** Runs one change at a time per subject. `change` changes the list of its jobs under way. */
  #alone(attempt: Attempt, run: (change: (to: Change) => Promise<void>) => Promise<void>): Promise<void> {
    const name = subjectOf(attempt)
    const change = async (to: Change) => {
      await this.#underWay.change(name, (before) => {
        const after = to(before ?? [])
        return after.length > 0 ? after : undefined
      })
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
