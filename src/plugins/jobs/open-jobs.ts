import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { Context, Jobs } from '../../api/context.js'
import type { Job, JobQuery, NewJob } from '../../api/jobs.js'
import type { State } from '../../api/state.js'
import { canonicalId, OWN_ID } from '../../auth/credentials.js'
import { acquireTaskLease } from '../../state/locks/task-lease.js'
import { type JobsOverview, jobsOverview } from './document.js'
import { jobStore } from './job-store.js'
import { cancelled, isPutOff, letGo, listJobs, makeRoom, resolved, retried, sealed, woken } from './list-jobs.js'
import { type JobRecord, newRecord, noSuchJob, ulids } from './record.js'
import { requireReading } from './require-again.js'
import { jobOfToken, oncePerToken } from './tokens.js'
import { defaultWorkTimes, Waiters, type WorkTimes } from './waiters.js'
import { HeldJobs, Orders, Rounds, Workers } from './workers.js'

export interface JobsOptions {
  readonly state: Pick<State, 'shared' | 'records' | 'locks' | 'requireIntact' | 'raiseMark'>
  readonly log: Logger
  /**
   * Context of the identity that created a job, of the server itself for ''. Undefined if there is no such identity.
   */
  readonly contextOf: (owner: Pick<Job, 'accessKeyId' | 'session'>) => Promise<Context | undefined>
  /** Time after its end at which a job is removed, ms; 0, the default, for never. */
  readonly expiryMs?: number | undefined
  readonly now?: () => number
  readonly workTimes?: WorkTimes
}

export interface OwnJobs extends Jobs {
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

/** The canonical id of the account that a context acts as. */
function accountOf({ caller }: Context): string {
  return caller ? canonicalId(caller.identity) : OWN_ID
}

function ofOtherAccount(): S3Error {
  return new S3Error('AccessDenied', {
    message: 'The job acts as another account: only a key pair of that account may have it run again, or go on.',
  })
}

/** Reads the index of jobs. Throws S3Error ServiceUnavailable. */
export async function openJobs(options: JobsOptions): Promise<OwnJobs> {
  const { state, log, now = Date.now, expiryMs = 0 } = options
  const store = jobStore(state, now)
  const nextId = ulids(now)
  const held = new HeldJobs()
  const waiters = new Waiters()
  const take = (id: string) => acquireTaskLease(state, `job/${id}`, log)
  const { contextOf, workTimes = defaultWorkTimes } = options
  const workers = new Workers({ store, log, now, contextOf, acquireLease: take, workTimes }, (id) => waiters.notify(id))
  const orders = new Orders({ store, workers, held, waiters, now })
  const rounds = new Rounds({ store, workers, held, log, now, shared: state.shared, expiryMs })
  await store.refresh()

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

  async function requireSameAccount(job: Pick<Job, 'accessKeyId' | 'session'>, context: Context) {
    const owner = await contextOf(job)
    // Without its key pair, the job does nothing any more.
    if (owner && accountOf(owner) !== accountOf(context)) throw ofOtherAccount()
  }

  return {
    register: (kind) => workers.register(kind),
    start() {
      rounds.scheduleAll()
      workers.start()
      rounds.start()
    },
    overview: () => jobsOverview(store, now()),
    endWaits: () => waiters.end(),
    async stop() {
      waiters.end()
      await workers.stop()
      await rounds.stop()
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
      await orders.update(id, (record) => letGo(record, input))
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
      const job = await orders.order(id, signature, (record) => cancelled(record, running(record)))
      if (job.status === 'Cancelling') workers.live(id)?.interrupt('cancelled')
      return job
    },
    async wake(id) {
      const record = await store.read(id)
      if (record && isPutOff(record)) await orders.update(id, woken)
    },
    retry: (id, signature, by) => orders.order(id, signature, (record) => retried(record, by)),
    requireSameAccount,
    async admitAgain(job, request, context) {
      await requireSameAccount(job, context)
      const kind = workers.kind(job.operation)
      if (kind?.admitAgain) await kind.admitAgain(job, request, context)
      else requireReading(job, context)
    },
    resolve: (id, outcome, signature) => orders.order(id, signature, (record) => resolved(record, outcome)),
    async log(id) {
      await read(id)
      return workers.live(id)?.lines ?? (await store.logs.get(id)) ?? []
    },
  }
}
