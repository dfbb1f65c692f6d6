import { createHash } from 'node:crypto'
import type { Job } from '../../api/jobs.js'
import type { Records, State } from '../../api/state.js'
import { type EndStatus, hasEnded, type JobRecord, noSuchJob, timeOfUlid } from './record.js'

export interface LogLine {
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

export interface IndexEntry {
  readonly kind: string
  readonly accessKeyId: string
  /** Absent until the job ends. */
  readonly end?: { readonly status: EndStatus /** ms since 1970 */; readonly at: number }
}

/** Ids of all jobs in order, in memory: about 200 bytes per job. */
class JobIndex {
  readonly #entries = new Map<string, IndexEntry>()
  readonly #texts = new Map<string, string>()
  /** Ascending. */
  readonly #ids: string[] = []

  get size(): number {
    return this.#entries.size
  }

  get(id: string): IndexEntry | undefined {
    return this.#entries.get(id)
  }

  set(id: string, { kind, accessKeyId, end }: IndexEntry): void {
    if (!this.#entries.has(id)) this.#insert(id)
    this.#entries.set(id, { kind: this.#once(kind), accessKeyId: this.#once(accessKeyId), ...(end && { end }) })
  }

  delete(id: string): void {
    if (this.#entries.delete(id)) this.#ids.splice(lowerBound(this.#ids, id), 1)
  }

  /**
   * Newest first, starting before `before`, which need not exist. Jobs that are added or removed during the iteration
   * may or may not appear.
   */
  *newestFirst(before?: string): Generator<[id: string, entry: IndexEntry]> {
    let at = before === undefined ? this.#ids.length : lowerBound(this.#ids, before)
    while (at > 0) {
      const id = this.#ids[at - 1] as string
      const entry = this.#entries.get(id)
      if (entry) yield [id, entry]
      at = lowerBound(this.#ids, id)
    }
  }

  *oldestFirst(): Generator<[id: string, entry: IndexEntry]> {
    for (const id of [...this.#ids]) {
      const entry = this.#entries.get(id)
      if (entry) yield [id, entry]
    }
  }

  /** A new id nearly always goes to the end. */
  #insert(id: string): void {
    const last = this.#ids.at(-1)
    if (last === undefined || id > last) this.#ids.push(id)
    else this.#ids.splice(lowerBound(this.#ids, id), 0, id)
  }

  /** Interns a string, to save memory. */
  #once(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    this.#texts.set(text, text)
    return text
  }
}

/** Number of ids that are less than `id`. */
function lowerBound(ids: readonly string[], id: string): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ids[middle] as string) < id) low = middle + 1
    else high = middle
  }
  return low
}

/** The job that was created for a token, or for a request without a token. */
export interface TokenRecord {
  readonly id: string
  readonly requestHash?: string
}

/** Keys of the token records of a job: one for its token or else its signature, and one for its request. */
export function tokenKeysOf({ accessKeyId, token, requestHash, signature }: Origin): string[] {
  const keyOf = (kind: string, text: string) =>
    `${kind}-${createHash('sha256').update(`${accessKeyId}\0${text}`).digest('base64url')}`
  return [
    ...(token === undefined ? [] : [keyOf('token', token)]),
    ...(token !== undefined || signature === undefined ? [] : [keyOf('signature', signature)]),
    ...(requestHash === undefined ? [] : [keyOf('request', requestHash)]),
  ]
}

/** The members of a job, or of a requested job, that determine its tokens. */
export interface Origin extends Pick<Job, 'accessKeyId' | 'token'> {
  readonly requestHash?: string | undefined
  readonly signature?: string | undefined
}
