import type { Records, State } from '../../../state/state.js'
import { timeOfUlid } from '../ulid.js'
import { type IndexEntry, JobIndex } from './job-index.js'
import { hasEnded, type JobRecord, noSuchJob } from './record.js'
import { type TokenRecord, tokenKeysOf } from './tokens.js'

export interface LogLine {
  /** ms since 1970 */
  readonly time: number
  readonly line: string
}

/**
 * An index entry without a record may belong to a job that is just being written. Beyond this age, ms, the job was
 * never written.
 */
const BEING_WRITTEN_MS = 60_000

/** Durable records of jobs. Every failure is S3Error ServiceUnavailable. */
export interface JobStore {
  readonly index: JobIndex
  /** Reloads the index, to see jobs of other proxies. */
  refresh(): Promise<void>
  /** Durable when it resolves. */
  add(record: JobRecord): Promise<void>
  read(id: string): Promise<JobRecord | undefined>
  /**
   * Changes the present record, one change at a time among all proxies; durable when it resolves. `to` returns the same
   * record for no change, and may throw. Throws NoSuchJob.
   */
  change(id: string, to: (record: JobRecord) => JobRecord): Promise<JobRecord>
  /** Repairs the index entry of a job from its record. Resolves false if there is no such job. */
  mend(id: string): Promise<boolean>
  /** Removes a job if `mayGo` accepts its present record. Resolves false if the job was kept. */
  remove(id: string, mayGo: (record: JobRecord) => boolean): Promise<boolean>
  readonly tokens: Records<TokenRecord>
  readonly logs: Records<readonly LogLine[]>
}

/** @param now ms since 1970 */
export function jobStore(state: Pick<State, 'records' | 'locks'>, now: () => number): JobStore {
  const jobs = state.records<JobRecord>('jobs')
  /** The index is loaded from these at start: they are a fraction of the size of the jobs. */
  const entries = state.records<IndexEntry>('job-index')
  const tokens = state.records<TokenRecord>('job-tokens')
  const logs = state.records<readonly LogLine[]>('job-logs')
  const index = new JobIndex()

  async function note(record: JobRecord): Promise<void> {
    const entry = entryOf(record, now())
    const known = index.get(record.job.id)
    if (known && known.end?.status === entry.end?.status) return
    await entries.set(record.job.id, entry)
    index.set(record.job.id, entry)
  }

  async function forget(id: string): Promise<void> {
    await entries.delete(id)
    index.delete(id)
  }

  const locked = <T>(id: string, run: () => Promise<T>) => state.locks.withName(`job/${id}`, run)

  return {
    index,
    tokens,
    logs,
    async refresh() {
      for await (const [id, entry] of entries.entries()) index.set(id, entry)
    },
    async add(record) {
      // The index comes first, so that a restart finds every job that is on record.
      await note(record)
      await jobs.set(record.job.id, record)
    },
    read: (id) => jobs.get(id),
    change: (id, to) =>
      locked(id, async () => {
        const changed = await jobs.change(id, async (record) => {
          if (!record) throw noSuchJob(id)
          const made = to(record)
          if (made === record) return record
          const stamped = { ...made, job: { ...made.job, updated: now() } }
          if (!hasEnded(stamped.job.status)) await note(stamped)
          return stamped
        })
        if (!changed) throw noSuchJob(id)
        if (hasEnded(changed.job.status)) await note(changed)
        return changed
      }),
    mend: (id) =>
      locked(id, async () => {
        const record = await jobs.get(id)
        if (record) await note(record)
        else if (now() - timeOfUlid(id.slice(2)) > BEING_WRITTEN_MS) await forget(id)
        return record !== undefined
      }),
    remove: (id, mayGo) =>
      locked(id, async () => {
        const record = await jobs.get(id)
        if (record && !mayGo(record)) return false
        if (record) {
          await removeTokens(tokens, record)
          await logs.delete(id)
          await jobs.delete(id)
        }
        await forget(id)
        return true
      }),
  }
}

function entryOf({ job }: JobRecord, now: number): IndexEntry {
  const { operation: kind, accessKeyId, status } = job
  return { kind, accessKeyId, ...(hasEnded(status) && { end: { status, at: now } }) }
}

/** Removes the tokens that stand for this job, and keeps those that a later job has taken. */
async function removeTokens(tokens: Records<TokenRecord>, { job }: JobRecord): Promise<void> {
  for (const key of tokenKeysOf(job)) await tokens.change(key, (token) => (token?.id === job.id ? undefined : token))
}
