import type { Records, State } from '../state/state.js'
import { type IndexEntry, JobIndex } from './job-index.js'
import { hasEnded, type JobRecord, noSuchJob } from './record.js'
import { type TokenRecord, tokenKeysOf } from './tokens.js'
import { timeOfUlid } from './ulid.js'

export interface LogLine {
  /** ms since 1970 */
  readonly time: number
  readonly line: string
}

/** An entry of the index whose job is not there may be of one that is just being written; older than this, ms, it is of one that never was. */
const BEING_WRITTEN_MS = 60_000

/** Jobs on record. Every failure is S3Error ServiceUnavailable. */
export interface JobStore {
  readonly index: JobIndex
  /** Reads which jobs there are. Of proxies on one state each sees so what the others have made. */
  refresh(): Promise<void>
  /** Durable when it resolves. */
  add(record: JobRecord): Promise<void>
  read(id: string): Promise<JobRecord | undefined>
  /**
   * Changes a record as it is now, one change at a time among all proxies; durable when it resolves. `to` may return the same record for no change, and throw. Throws
   * NoSuchJob.
   */
  change(id: string, to: (record: JobRecord) => JobRecord): Promise<JobRecord>
  /** Makes the index say of a job what its record says. False when there is no such job. */
  mend(id: string): Promise<boolean>
  /** Forgets a job, if it may go as it is now. False when it was kept. */
  remove(id: string, mayGo: (record: JobRecord) => boolean): Promise<boolean>
  readonly tokens: Records<TokenRecord>
  readonly logs: Records<readonly LogLine[]>
}

/** @param now ms since 1970 */
export function jobStore(state: Pick<State, 'records' | 'locks'>, now: () => number): JobStore {
  const jobs = state.records<JobRecord>('jobs')
  /** What the index is made from at a start: a fraction of the jobs themselves. */
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
      // In this order: a job that is on record is found after a restart.
      await note(record)
      await jobs.set(record.job.id, record)
    },
    read: (id) => jobs.get(id),
    change: (id, to) =>
      locked(id, async () => {
        const record = await jobs.get(id)
        if (!record) throw noSuchJob(id)
        const changed = to(record)
        if (changed === record) return record
        const stamped = { ...changed, job: { ...changed.job, updated: now() } }
        if (!hasEnded(stamped.job.status)) await note(stamped)
        await jobs.set(id, stamped)
        if (hasEnded(stamped.job.status)) await note(stamped)
        return stamped
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

/** Those that stand for this job, and not for one after it. */
async function removeTokens(tokens: Records<TokenRecord>, { job }: JobRecord): Promise<void> {
  for (const key of tokenKeysOf(job)) if ((await tokens.get(key))?.id === job.id) await tokens.delete(key)
}
