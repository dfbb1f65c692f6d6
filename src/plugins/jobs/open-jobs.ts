import { DAY_MS, HOUR_MS } from '../../common/durations.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import { PeriodicTask } from '../../common/periodic-task.js'
import type { Context } from '../../server/context.js'
import { acquireTaskLease } from '../../state/locks/task-lease.js'
import type { State } from '../../state/state.js'
import { HeldJobs } from './held-jobs.js'
import type { Job, JobQuery, Jobs, NewJob } from './job.js'
import { type JobsOverview, jobsOverview } from './overview.js'
import { jobStore } from './records/job-store.js'
import { listJobs } from './records/list-jobs.js'
import { hasEnded, type JobRecord, newRecord, noSuchJob, oncePerSignature } from './records/record.js'
import { cancelled, isPutOff, letGo, resolved, retried, sealed, woken } from './records/requested.js'
import { makeRoom, sweepJobs } from './records/sweep-jobs.js'
import { jobOfToken, oncePerToken } from './records/tokens.js'
import { type Attendance, usualAttendance } from './run/attended.js'
import type { AnyKind } from './run/step.js'
import { Waiters } from './run/waiters.js'
import { Workers } from './run/workers.js'
import { ulids } from './ulid.js'

export interface JobsOptions {
  readonly state: Pick<State, 'shared' | 'records' | 'locks' | 'requireIntact'>
  readonly log: Logger
  /**
   * Context of the identity that created a job, of the server itself for ''. Undefined if there is no such identity.
   */
  readonly contextOf: (owner: Pick<Job, 'accessKeyId' | 'session'>) => Promise<Context | undefined>
  /** Time after its end at which a job is removed, ms; default 7 days, 0 for never. */
  readonly expiryMs?: number | undefined
  /** ms since 1970 */
  readonly now?: () => number
  readonly attendance?: Attendance
}

/** The jobs of this process. */
export interface OwnJobs extends Jobs {
  /**
   * Runs jobs by these kinds from now on, and by no others. Jobs that are running end with the kind that they began
   * with.
   * @returns when no job runs by a former kind
   */
  replace(kinds: readonly AnyKind[]): Promise<void>
  /** Starts running jobs, including those that an earlier process left. */
  start(): void
  /** Counts the jobs of all processes on the state. Throws S3Error ServiceUnavailable. */
  overview(): Promise<JobsOverview>
  /** Ends all waits, present and future. */
  endWaits(): void
  /**
   * Fires the signal of running jobs and waits for them for a while. Jobs that have not ended continue after the
   * restart.
   */
  stop(): Promise<void>
}

/** Interval at which a proxy on a shared state looks for jobs that others have created, left or cancelled, ms. */
const LOOK_MS = 10_000

/** Reads the index of jobs. Throws S3Error ServiceUnavailable. */
export async function openJobs(options: JobsOptions): Promise<OwnJobs> {
  const { state, log, now = Date.now, expiryMs = 7 * DAY_MS } = options
  const store = jobStore(state, now)
  const nextId = ulids(now)
  const held = new HeldJobs()
  /** Kinds of jobs that no loaded plugin can run; each is logged once. */
  const orphaned = new Set<string>()
  const background: PeriodicTask[] = []
  const waiters = new Waiters()
  const take = (id: string) => acquireTaskLease(state, `job/${id}`, log)
  const { contextOf, attendance = usualAttendance } = options
  const workers = new Workers({ store, log, now, contextOf, acquireLease: take, attendance }, (id) =>
    waiters.notify(id),
  )
  await store.refresh()

  /** Schedules every job that has not ended and that this process is not running or holding. */
  function scheduleAll(): void {
    for (const [id, { kind, end }] of store.index.oldestFirst()) {
      if (end || workers.has(id) || held.has(id)) continue
      if (workers.knows(kind)) workers.schedule(kind, id)
      else if (!orphaned.has(kind)) {
        orphaned.add(kind)
        log.warn({ kind }, 'jobs are waiting for a plugin that is not loaded')
      }
    }
  }

  /**
   * On a shared state: picks up jobs that other proxies left, and interrupts those that they took over or cancelled.
   */
  async function look(): Promise<void> {
    await store.refresh()
    scheduleAll()
    for (const live of workers.allLive()) {
      live.checkClaim()
      const record = await store.read(live.job.id)
      if (record?.job.status === 'Cancelling') live.interrupt('cancelled')
    }
  }

  function every(intervalMs: number, what: string, run: () => Promise<unknown>): void {
    const task = new PeriodicTask(run, (err) => log.error({ err }, `${what} failed and will be retried`))
    task.start(intervalMs)
    background.push(task)
  }

  async function read(id: string): Promise<JobRecord> {
    const record = await store.read(id)
    if (!record) throw noSuchJob(id)
    return workers.live(id)?.merged(record) ?? record
  }

  async function make<Input>(id: string, asked: NewJob<Input>): Promise<Job> {
    await makeRoom(store)
    const record = newRecord(id, asked, now())
    const lease = asked.held ? await take(id) : undefined
    try {
      await store.add(record)
    } catch (error) {
      await lease?.release()
      throw error
    }
    if (lease) held.add(id, lease)
    else workers.schedule(asked.kind, id)
    return record.job
  }

  /**
   * Changes a job on request, then releases its lease, notifies its waiters or schedules it, as its new state requires.
   */
  async function update(id: string, to: (record: JobRecord) => JobRecord): Promise<Job> {
    return changed(await store.change(id, to))
  }

  /** As `update`, for a request: a signature counts once, also when the change is refused. */
  async function order(id: string, signature: string | undefined, to: (record: JobRecord) => JobRecord): Promise<Job> {
    if (signature === undefined) return update(id, to)
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
    return changed(record)
  }

  async function changed(record: JobRecord): Promise<Job> {
    const { job } = record
    if (!record.held) await held.remove(job.id)
    if (hasEnded(job.status)) waiters.notify(job.id)
    else if (!record.held) workers.schedule(job.operation, job.id)
    return job
  }

  return {
    register: (kind) => workers.register(kind),
    replace(kinds) {
      const ended = workers.replace(kinds)
      scheduleAll()
      return ended
    },
    start() {
      scheduleAll()
      workers.start()
      if (state.shared) every(LOOK_MS, 'looking for jobs', look)
      if (expiryMs > 0)
        every(HOUR_MS, 'removing old jobs', () => sweepJobs(store, now() - expiryMs, workers.stopping, log))
    },
    overview: () => jobsOverview(store, now()),
    endWaits: () => waiters.end(),
    async stop() {
      waiters.end()
      await workers.stop()
      for (const task of background) await task.stop()
      await held.removeAll()
    },
    async create<Input>(asked: NewJob<Input>) {
      if (!workers.knows(asked.kind)) throw new Error(`No plugin registers jobs of the kind "${asked.kind}"`)
      if (workers.stopping.aborted) throw new S3Error('ServiceUnavailable', { message: 'The server is shutting down.' })
      const id = `j-${nextId()}`
      return (await oncePerToken(state, store, asked, id, now(), () => make(id, asked))) as Job<Input>
    },
    find: (asked) => jobOfToken(store, asked),
    async commitHeld(id) {
      await store.change(id, sealed)
    },
    async release(id, input) {
      await update(id, (record) => letGo(record, input))
    },
    async leave(id) {
      await held.remove(id)
      const kind = store.index.get(id)?.kind
      if (kind !== undefined) workers.schedule(kind, id)
    },
    async drop(id) {
      await store.remove(id, (record) => record.held)
      await held.remove(id)
      waiters.notify(id)
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
    async cancel(id, signature) {
      const mayBeElsewhere = state.shared && !held.has(id)
      const running = (record: JobRecord) => workers.working(id) || (mayBeElsewhere && !record.held)
      const job = await order(id, signature, (record) => cancelled(record, running(record)))
      if (job.status === 'Cancelling') workers.live(id)?.interrupt('cancelled')
      return job
    },
    async wake(id) {
      const record = await store.read(id)
      if (record && isPutOff(record)) await update(id, woken)
    },
    retry: (id, signature) => order(id, signature, retried),
    resolve: (id, outcome, signature) => order(id, signature, (record) => resolved(record, outcome)),
    async log(id) {
      await read(id)
      return workers.live(id)?.lines ?? (await store.logs.get(id)) ?? []
    },
  }
}
