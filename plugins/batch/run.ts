import {
  type Context,
  type JobKind,
  Pace,
  type Perform,
  type RequestOwner,
  Retry,
  type RunningJob,
  S3Error,
  toS3Error,
} from 'dealgate/plugin'
import { estimateRows } from './estimate.js'
import type { Live } from './live.js'
import type { BatchOrder } from './order.js'
import { CHECKPOINT, prepareRows, withEstimate } from './prepare.js'
import {
  type BatchPhase,
  type BatchRecord,
  type BatchRecords,
  type BatchRun,
  TakenOver,
  withResults,
} from './records.js'
import { reportFailed, writeReport } from './report.js'
import { BatchState, Stopped } from './state.js'
import type { Send } from './task.js'
import { type TaskKind, taskKind } from './task-kinds.js'
import type { Turns } from './turns.js'
import { UNAVAILABLE, workChunk } from './work.js'

export const BATCH_JOB = 'batch:CreateBatchJob'

/** Jobs of a process that are under way or wait for their turn. */
const MAX_OPEN = 100

/** Jobs of one key pair among them, so that others have room. */
export const MAX_OPEN_OF_ONE = 50
const ROOM_MS = 30_000

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-create-job.html */
const SUSPENDED_MS = 30 * DAY_MS

/** A job that waits for a client looks so often: the call that wakes it may come before it waits. */
const LOOK_MS = MINUTE_MS

/** After at least so many tasks, a job fails if more of them have failed than have not. */
const JUDGED_TASKS = 1000

/** While the gateway does not answer. */
const BACKOFF = { firstMs: 30_000, longestMs: 10 * MINUTE_MS }

export const WAITING_FOR_GATEWAY = 'WaitingForGateway'
export const WAITING_FOR_BUDGET = 'WaitingForBudget'

export interface BatchDeps {
  readonly records: BatchRecords
  readonly perform: Perform
  readonly live: Live
  readonly turns: Turns
  /** The pace of all jobs of the process. */
  readonly pace: Pace
  /** ms since 1970 */
  readonly now: () => number
  /** Jobs of the server itself. */
  readonly jobs: Pick<Context['jobs'], 'cancel'>
}

/** The result of a job. */
export interface BatchResult {
  readonly TotalNumberOfTasks: number
  readonly NumberOfTasksSucceeded: number
  readonly NumberOfTasksFailed: number
  readonly Bytes: number
  readonly Price?: string
}

/** @param deps known once the plugin is started */
export function batchJobs(deps: () => BatchDeps): JobKind<BatchOrder, BatchResult> {
  return { name: BATCH_JOB, concurrency: MAX_OPEN, run: (job) => runBatch(deps(), job) }
}

async function runBatch(deps: BatchDeps, job: RunningJob<BatchOrder>): Promise<BatchResult> {
  const { records, live } = deps
  const { id, accessKeyId } = job.job
  const run = await records.run(id)
  const record = await run.get()
  if (record.asked === undefined && live.of(accessKeyId) >= MAX_OPEN_OF_ONE) throw new Retry(ROOM_MS, 'Ready')
  const end = live.begin(id, accessKeyId, record)
  const batch = new Batch(deps, job, run)
  try {
    return await batch.work().catch((thrown) => batch.settle(thrown))
  } catch (thrown) {
    throw batch.orLater(thrown)
  } finally {
    end()
  }
}

/** One run of a job. */
class Batch {
  readonly #deps: BatchDeps
  readonly #job: RunningJob<BatchOrder>
  readonly #run: BatchRun
  readonly #state: BatchState
  readonly #order: BatchOrder
  readonly #kind: TaskKind
  readonly #send: Send
  /** Tasks that have a turn. */
  #working = 0
  #asked: { readonly wokenBy: BatchRecord['wokenBy']; readonly owner: RequestOwner } | undefined

  constructor(deps: BatchDeps, job: RunningJob<BatchOrder>, run: BatchRun) {
    const own = job.input.rate === undefined ? undefined : new Pace(job.input.rate)
    this.#deps = deps
    this.#job = job
    this.#run = run
    this.#state = new BatchState(deps.live, job, run)
    this.#order = job.input
    this.#kind = taskKind(job.input, (name) => job.context.plugins.storageClasses.has(name))
    this.#send = async (request) => {
      await own?.next(job.signal)
      await deps.pace.next(job.signal)
      if (!job.owned()) throw new TakenOver()
      return deps.perform(this.#owner(), request, job.signal)
    }
  }

  /** The callers who had the job go on must have the rights, too. The same rights are one object, parsed once. */
  #owner(): RequestOwner {
    const { wokenBy } = this.#deps.live.get(this.#run.id) ?? {}
    if (this.#asked && this.#asked.wokenBy === wokenBy) return this.#asked.owner
    const { job, context } = this.#job
    const client = wokenBy?.client ?? this.#order.client
    const owner = { accessKeyId: job.accessKeyId, session: context.callerJobs.session(wokenBy?.session), client }
    this.#asked = { wokenBy, owner }
    return owner
  }

  /** Throws Stopped, Retry, S3Error. */
  async work(): Promise<BatchResult> {
    const { dryRun, confirmationRequired } = this.#order
    let record = await this.#ready(await this.#state.look())
    if (record.suspended !== undefined && this.#deps.now() - record.suspended > SUSPENDED_MS)
      throw new S3Error('OperationAborted', { message: 'The job was not confirmed within 30 days.' })
    if (!record.prepared) {
      this.#state.show('Preparing', record)
      record = await prepareRows(this.#run, this.#order, this.#send, async (rows) => {
        this.#state.show('Preparing', { ...(await this.#state.look()), listing: { chunks: 0, rows } })
      })
    }
    if (dryRun || (confirmationRequired && this.#kind.spends)) record = await this.#estimate(record)
    if (dryRun) return this.#end(record)
    if (confirmationRequired && !record.confirmed) {
      record = await this.#state.change((present) =>
        present.confirmed ? present : { ...present, suspended: present.suspended ?? this.#deps.now() },
      )
      if (!record.confirmed) throw new Retry(LOOK_MS, 'Suspended')
    }
    // The report of a job that has failed may still have to be written.
    if (tooManyFailed(record)) throw tooManyFailures(record)
    for (let number = record.done; number < record.listing.chunks; number++) {
      record = await this.#chunk(number)
      if (tooManyFailed(record)) throw tooManyFailures(record)
    }
    return this.#end(await this.#report('Completing'))
  }

  /** A job that has failed may be run again if it has tried no task: it reads its manifest anew, the same one. */
  async #ready(record: BatchRecord): Promise<BatchRecord> {
    if (!record.cleared) return record
    if (!record.prepared)
      return this.#state.change(({ cleared: _, ...present }) => ({ ...present, listing: { chunks: 0, rows: 0 } }))
    if (record.done === record.listing.chunks || this.#order.dryRun) return record
    throw new S3Error('InvalidRequest', { message: 'The job has ended, and its rows are gone: order another one.' })
  }

  /** Ends or pauses a job that goes no further. Throws what is to be its outcome. */
  async settle(thrown: unknown): Promise<never> {
    if (thrown instanceof Stopped) return this.#stop()
    if (thrown instanceof TakenOver || thrown instanceof Retry || this.#job.signal.aborted) throw thrown
    const failure = toS3Error(thrown)
    return UNAVAILABLE.includes(failure.code) ? Promise.reject(failure) : this.#fail(failure)
  }

  /** A job that cannot reach the gateway or its records tries again, also to write its report. */
  orLater(thrown: unknown): unknown {
    if (this.#job.signal.aborted) return thrown
    const failure = toS3Error(thrown)
    return UNAVAILABLE.includes(failure.code) ? this.#later(WAITING_FOR_GATEWAY, failure) : thrown
  }

  /** Ends or pauses the job as a client has asked last: tasks may have gone on for long since it was stopped. */
  async #stop(): Promise<never> {
    const { asked } = await this.#state.change((present) => present)
    if (asked === undefined) throw new Retry(0, 'Ready')
    if (asked === 'pause') throw new Retry(LOOK_MS, 'Paused')
    await this.#end(await this.#report('Cancelling'))
    await this.#deps.jobs.cancel(this.#job.job.id)
    this.#job.signal.throwIfAborted()
    throw new Error('the job could not be cancelled')
  }

  async #fail(failure: S3Error): Promise<never> {
    // Without its key pair, the job can write no report either.
    const silent = failure.code === 'InvalidAccessKeyId' || failure.code === 'ReportNotWritten'
    await this.#end(await (silent ? this.#run.get() : this.#report('Failing')))
    throw failure
  }

  /** Puts the job off, for longer each time. */
  #later(phase: string, cause?: S3Error): Retry {
    return Retry.again(this.#job, phase, BACKOFF, cause)
  }

  async #chunk(number: number): Promise<BatchRecord> {
    const { now } = this.#deps
    const began = performance.now()
    const known = await this.#run.get()
    const worked = await workChunk(
      {
        ...{ run: this.#run, kind: this.#kind, send: this.#send, signal: this.#job.signal, now },
        check: async () => {
          if (this.#kind.spends) await this.#state.look()
          else this.#state.check()
        },
        look: () => this.#state.look(),
        enter: (signal) => this.#turn(known, signal),
        show: (chunk) => this.#state.show('Active', withResults(known, chunk)),
      },
      number,
    )
    const active = performance.now() - began
    if (typeof worked !== 'string')
      return this.#state.change((record) => ({ ...withResults(record, worked), active: record.active + active }))
    await this.#state.change((record) => ({ ...record, active: record.active + active }))
    if (worked === 'budget') throw new Retry(DAY_MS - (now() % DAY_MS) + 1000, WAITING_FOR_BUDGET)
    throw this.#later(WAITING_FOR_GATEWAY)
  }

  async #estimate(before: BatchRecord): Promise<BatchRecord> {
    let record = before
    for (let number = record.estimated.chunks; number < record.listing.chunks; number++) {
      await this.#state.look()
      const { rows } = await this.#run.chunk(number)
      const estimate = await estimateRows(rows, this.#kind, this.#send, () => this.#state.check())
      record = await this.#state.change((present) => withEstimate(present, estimate))
      this.#state.show('Preparing', record)
    }
    return record
  }

  async #turn(record: BatchRecord, signal: AbortSignal): Promise<() => void> {
    const { id, accessKeyId } = this.#job.job
    const show = (phase: BatchPhase) => {
      if (this.#working === 0) this.#state.show(phase, this.#state.shown ?? record)
    }
    const leave = await this.#deps.turns.enter({
      owner: accessKeyId,
      priority: () => this.#deps.live.get(id)?.priority ?? this.#order.priority,
      signal,
      onWait: () => show(record.done > 0 ? 'Paused' : 'Ready'),
    })
    show('Active')
    this.#working++
    return () => {
      this.#working--
      leave()
    }
  }

  /** Writes the report, if one is ordered and a task was tried. Throws Retry, S3Error. */
  async #report(phase: 'Completing' | 'Failing' | 'Cancelling'): Promise<BatchRecord> {
    let record = await this.#run.get()
    const { report } = this.#order
    const tried = record.done > 0 || (record.prepared && (await this.#hasBegun(record)))
    // The tasks of a chunk that a client has stopped count, too.
    if (tried && record.report === undefined) {
      if (record.done < record.listing.chunks) record = await this.#withUnfinished(record)
      this.#state.show(phase, record)
      if (report) {
        const { now } = this.#deps
        const key = await writeReport(this.#run, report, record, { send: this.#send, now: now() }).catch(reportFailed)
        record = await this.#state.change((present) => ({ ...present, report: { bucket: report.bucket, key } }))
      }
    }
    return record
  }

  async #hasBegun({ listing, done }: BatchRecord): Promise<boolean> {
    return done < listing.chunks && (await this.#run.chunk(done)).results !== undefined
  }

  async #withUnfinished(record: BatchRecord): Promise<BatchRecord> {
    const chunk = await this.#run.chunk(record.done)
    const { listing } = record
    return this.#state.change((present) => ({ ...withResults(present, chunk), done: listing.chunks }))
  }

  async #end(record: BatchRecord): Promise<BatchResult> {
    this.#state.show(undefined, record)
    // Chunks may have been written behind the last checkpoint.
    await this.#deps.records.clear(this.#run.id, record.listing.chunks + (record.prepared ? 0 : CHECKPOINT))
    await this.#state.change((present) => ({ ...present, cleared: true }))
    const { price } = record.estimated
    return {
      TotalNumberOfTasks: record.listing.rows,
      NumberOfTasksSucceeded: record.succeeded,
      NumberOfTasksFailed: record.failed,
      Bytes: record.bytes,
      ...(price !== undefined && { Price: price }),
    }
  }
}

function tooManyFailed({ succeeded, failed }: BatchRecord): boolean {
  return succeeded + failed >= JUDGED_TASKS && failed > succeeded
}

function tooManyFailures({ succeeded, failed }: BatchRecord): S3Error {
  return new S3Error('TooManyFailedTasks', {
    status: 409,
    message: `Of ${succeeded + failed} tasks, ${failed} have failed: more than half of them. The others were not tried.`,
  })
}
