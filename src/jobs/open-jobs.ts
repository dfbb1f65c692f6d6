import type { Context } from '../context.js'
import { S3Error } from '../errors/s3-error.js'
import type { Logger } from '../log.js'
import { type Claim, takeClaim } from '../state/claim.js'
import type { State } from '../state/state.js'
import { type Attendance, usualAttendance } from './attended.js'
import type { Job, JobQuery, Jobs, NewJob } from './job.js'
import { jobStore } from './job-store.js'
import { listJobs } from './list-jobs.js'
import {
  ended,
  hasEnded,
  type JobRecord,
  newRecord,
  noSuchJob,
  plain,
  released,
  renewed,
  withStatus,
} from './record.js'
import { makeRoom, sweepJobs } from './sweep-jobs.js'
import { jobOfToken, oncePerToken } from './tokens.js'
import { ulids } from './ulid.js'
import { Waiters } from './waiters.js'
import { Workers } from './workers.js'

export interface JobsOptions {
  readonly state: Pick<State, 'shared' | 'records' | 'locks'>
  readonly log: Logger
  /** Of an identity by its access key id, of the server itself for ''; undefined when there is no such identity. */
  readonly contextOf: (accessKeyId: string) => Promise<Context | undefined>
  /** Age at which a job that has ended is forgotten, ms since its end; default 7 days, 0 for never. */
  readonly expiryMs?: number | undefined
  /** ms since 1970 */
  readonly now?: () => number
  readonly attendance?: Attendance
}

/** The jobs of this process. */
export interface OwnJobs extends Jobs {
  /** Begins to work, also on what an earlier process has left. */
  start(): void
  /** From now on nobody waits for a job. */
  endWaits(): void
  /** Tells running jobs by their signal and waits for them a while; they go on after the restart. */
  stop(): Promise<void>
}

const DAY_MS = 24 * 60 * 60 * 1000
/** How often to look, on a shared state, for what other proxies have made, left or cancelled, ms. */
const LOOK_MS = 10_000
const SWEEP_MS = 60 * 60 * 1000

/** Reads which jobs there are. Throws S3Error ServiceUnavailable. */
export async function openJobs(options: JobsOptions): Promise<OwnJobs> {
  const { state, log, now = Date.now, expiryMs = 7 * DAY_MS } = options
  const store = jobStore(state, now)
  const nextId = ulids(now)
  /** Of held jobs that were made here. */
  const held = new Map<string, Claim>()
  /** Kinds of jobs that nobody here can run; each is told of once. */
  const orphaned = new Set<string>()
  /** Ends what is done now and then. */
  const background: (() => Promise<void>)[] = []
  const waiters = new Waiters()
  const take = (id: string) => takeClaim(state, `job/${id}`, log)
  const { contextOf, attendance = usualAttendance } = options
  const workers = new Workers({ store, log, now, contextOf, claim: take, attendance }, (id) => waiters.tell(id))
  await store.refresh()

  /** Every job that has not ended and that nobody here is at. */
  function scheduleAll(): void {
    for (const [id, { kind, end }] of store.index.oldestFirst()) {
      if (end || workers.has(id) || held.has(id)) continue
      if (workers.knows(kind)) workers.schedule(kind, id)
      else if (!orphaned.has(kind)) {
        orphaned.add(kind)
        log.warn({ kind }, 'there are jobs of a plugin that is not there: they wait for it')
      }
    }
  }

  /** On a shared state: what others have left, and what they want of us. */
  async function look(): Promise<void> {
    await store.refresh()
    scheduleAll()
    for (const live of workers.allLive()) {
      live.checkClaim()
      const record = await store.read(live.job.id)
      if (record?.job.status === 'Cancelling') live.interrupt('cancelled')
    }
  }

  /** Now and then; one at a time. */
  function every(ms: number, what: string, run: () => Promise<unknown>): void {
    let running: Promise<unknown> | undefined
    const attempt = () => {
      running ??= run()
        .catch((err) => log.error({ err }, `${what} failed; it will be tried again`))
        .finally(() => {
          running = undefined
        })
    }
    attempt()
    const timer = setInterval(attempt, ms).unref()
    background.push(async () => {
      clearInterval(timer)
      await running
    })
  }

  async function read(id: string): Promise<JobRecord> {
    const record = await store.read(id)
    if (!record) throw noSuchJob(id)
    return workers.live(id)?.merged(record) ?? record
  }

  async function make<Input>(id: string, asked: NewJob<Input>): Promise<Job> {
    await makeRoom(store)
    const record = newRecord(id, asked, now())
    const claim = asked.held ? await take(id) : undefined
    try {
      await store.add(record)
    } catch (error) {
      await claim?.release()
      throw error
    }
    if (claim) held.set(id, claim)
    else workers.schedule(asked.kind, id)
    return record.job
  }

  async function unhold(id: string): Promise<void> {
    const claim = held.get(id)
    held.delete(id)
    await claim?.release()
  }

  /** Changes a job for somebody who asks for it, and sees to what follows from it. */
  async function settle(id: string, to: (record: JobRecord) => JobRecord): Promise<Job> {
    const { job, held } = await store.change(id, to)
    if (!held) await unhold(id)
    if (hasEnded(job.status)) waiters.tell(id)
    else if (!held) workers.schedule(job.operation, id)
    return job
  }

  return {
    register: (kind) => workers.register(kind),
    start() {
      scheduleAll()
      workers.start()
      if (state.shared) every(LOOK_MS, 'looking for jobs', look)
      if (expiryMs > 0)
        every(SWEEP_MS, 'removing old jobs', () => sweepJobs(store, now() - expiryMs, workers.stopping, log))
    },
    endWaits: () => waiters.end(),
    async stop() {
      waiters.end()
      await workers.stop()
      for (const end of background) await end()
      for (const id of [...held.keys()]) await unhold(id)
    },
    async create<Input>(asked: NewJob<Input>) {
      if (!workers.knows(asked.kind)) throw new Error(`There is no kind of jobs named "${asked.kind}"`)
      if (workers.stopping.aborted) throw new S3Error('ServiceUnavailable', { message: 'The server is shutting down.' })
      const id = `j-${nextId()}`
      return (await oncePerToken(state, store, asked, id, now(), () => make(id, asked))) as Job<Input>
    },
    find: (asked) => jobOfToken(store, asked),
    async release(id, input) {
      await settle(id, (record) =>
        record.held
          ? released({ ...record, job: { ...record.job, ...(input !== undefined && { input: plain(input) }) } })
          : record,
      )
    },
    async leave(id) {
      await unhold(id)
      const kind = store.index.get(id)?.kind
      if (kind !== undefined) workers.schedule(kind, id)
    },
    async drop(id) {
      await store.remove(id, (record) => record.held)
      await unhold(id)
      waiters.tell(id)
    },
    get: async (id) => {
      const record = await store.read(id)
      return record && (workers.live(id)?.merged(record) ?? record).job
    },
    list: (query: JobQuery) =>
      listJobs(store, query, (record) => workers.live(record.job.id)?.merged(record) ?? record),
    wait: (id, ms, signal) =>
      waiters.wait(
        id,
        { ms, signal, elsewhere: state.shared && (() => !workers.working(id)) },
        async () => (await read(id)).job,
      ),
    async cancel(id) {
      const atWork = () => workers.working(id)
      const mayBeElsewhere = state.shared && !held.has(id)
      const job = await settle(id, (record) => {
        const { status } = record.job
        if (status === 'Cancelled' || status === 'Cancelling') return record
        if (hasEnded(status)) throw refused(record, `has ended: ${status}`)
        if (record.committed || status === 'Unknown') throw refused(record, 'has sent what cannot be taken back')
        if (atWork() || (mayBeElsewhere && !record.held)) return withStatus(record, 'Cancelling')
        return ended(record, { status: 'Cancelled' })
      })
      if (job.status === 'Cancelling') workers.live(id)?.interrupt('cancelled')
      return job
    },
    retry: (id) =>
      settle(id, (record) => {
        const { status } = record.job
        if (status === 'Failed' || status === 'Cancelled' || status === 'Unknown') return renewed(record)
        throw refused(record, `is ${status}: only what has failed, was cancelled or is unknown is run again`)
      }),
    resolve: (id, outcome) =>
      settle(id, (record) => {
        if (record.job.status !== 'Unknown') throw refused(record, `is ${record.job.status}, not Unknown`)
        return 'failure' in outcome
          ? ended(record, { status: 'Failed', failure: outcome.failure })
          : ended(record, { status: 'Complete', result: plain(outcome.result) })
      }),
    async log(id) {
      await read(id)
      return workers.live(id)?.lines ?? (await store.logs.get(id)) ?? []
    },
  }
}

function refused({ job }: JobRecord, why: string): S3Error {
  return new S3Error('InvalidRequest', { message: `The job ${why}.`, fields: { JobId: job.id, Status: job.status } })
}
