import { type Backoff, pauseAfter } from '../../../common/backoff.js'
import { isMarked, S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { Context, RunningJob } from '../../api/context.js'
import type { Job, JobProgress, PutOff } from '../../api/jobs.js'
import type { Lease } from '../../api/locks.js'
import type { JobStore, LogLine } from './job-store.js'
import type { JobRecord } from './record.js'

/** Shortest interval between writes of the progress, ms. */
const FLUSH_MS = 1000
const LOG_LINES = 100

/** Largest number of characters of a line. */
const MAX_LINE_LENGTH = 1000

/** Delay before a job whose `commit` could not be written runs again, ms. */
const COMMIT_AGAIN_MS = 5000

/** Why a job's signal fires. */
export type Interruption = 'cancelled' | 'stopping' | 'taken-over' | 'silent'

interface LiveDeps {
  readonly store: JobStore
  readonly lease: Lease
  readonly context: Context
  readonly log: Logger
  readonly now: () => number
}

/** A job that runs in this process. */
export class LiveJob implements RunningJob<unknown> {
  readonly context: Context
  readonly log: Logger
  readonly putOff: PutOff | undefined
  readonly #deps: LiveDeps
  readonly #controller = new AbortController()
  #job: Job
  #committed: boolean
  #lines: LogLine[] = []
  /** Parts that are not on disk yet. */
  #unsaved = { job: false, lines: false }
  #closed = false
  #heard = performance.now()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(record: JobRecord, deps: LiveDeps) {
    this.#job = record.job
    this.#committed = record.committed
    this.putOff = record.putOff
    this.#deps = deps
    this.context = deps.context
    this.log = deps.log
  }

  get job(): Job {
    return this.#job
  }

  get input(): unknown {
    return this.#job.input
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get committed(): boolean {
    return this.#committed
  }

  get interruption(): Interruption | undefined {
    return this.signal.aborted ? (this.signal.reason as InterruptedError).why : undefined
  }

  interrupt(why: Interruption): void {
    if (!this.signal.aborted) this.#controller.abort(new InterruptedError(why))
  }

  /** Time since the last report, ms. */
  get silentMs(): number {
    return performance.now() - this.#heard
  }

  report(progress: Partial<JobProgress>): void {
    this.#job = { ...this.#job, progress: { ...this.#job.progress, ...progress }, updated: this.#deps.now() }
    this.#saveSoon('job')
  }

  link(name: string, path: string): void {
    this.#job = { ...this.#job, links: { ...this.#job.links, [name]: path } }
    this.#saveSoon('job')
  }

  note(line: string): void {
    this.#lines.push({ time: this.#deps.now(), line: line.slice(0, MAX_LINE_LENGTH) })
    if (this.#lines.length > LOG_LINES) this.#lines.shift()
    this.#saveSoon('lines')
  }

  /** Interrupts the job if another process may have taken it over. */
  checkClaim(): void {
    if (!this.#deps.lease.held()) this.interrupt('taken-over')
  }

  owned(): boolean {
    this.checkClaim()
    return !this.#closed && this.interruption !== 'taken-over'
  }

  async commit(): Promise<void> {
    this.checkClaim()
    this.signal.throwIfAborted()
    await this.#write((record) => {
      if (record.job.status === 'Cancelling') this.interrupt('cancelled')
      this.signal.throwIfAborted()
      return { ...record, committed: true }
    })
    this.#committed = true
  }

  async uncommit(): Promise<void> {
    await this.#write((record) => {
      if (!this.owned()) throw new InterruptedError('taken-over')
      return { ...record, committed: false }
    })
    this.#committed = false
  }

  /** Returns the record with the progress that this process knows. */
  merged(record: JobRecord): JobRecord {
    const { progress, links } = this.#job
    const updated = Math.max(record.job.updated, this.#job.updated)
    return { ...record, job: { ...record.job, progress, updated, ...(links && { links }) } }
  }

  /** The lines of its log, including those that are not on disk yet. */
  get lines(): readonly LogLine[] {
    return this.#lines
  }

  /** Loads the log of an earlier run, to append to it. */
  async open(): Promise<this> {
    this.#lines = [...((await this.#deps.store.logs.get(this.#job.id)) ?? []), ...this.#lines].slice(-LOG_LINES)
    return this
  }

  /** Writes what is unsaved, and nothing afterwards. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#writing
    await this.#save()
  }

  async #write(to: (record: JobRecord) => JobRecord): Promise<void> {
    this.#heard = performance.now()
    try {
      await this.#deps.store.change(this.#job.id, (record) => this.merged(to(record)))
    } catch (thrown) {
      // Nothing was sent, so the job can start again once the records are writable.
      if (thrown instanceof S3Error && thrown.status >= 500) {
        throw new Retry(COMMIT_AGAIN_MS, 'Waiting until the server can write its records', { cause: thrown })
      }
      throw thrown
    }
  }

  #saveSoon(what: 'job' | 'lines'): void {
    this.#heard = performance.now()
    if (this.#closed) return
    this.#unsaved[what] = true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#writing = this.#writing.then(() => this.#save())
    }, FLUSH_MS).unref()
  }

  /** Never rejects: what could not be written is written with the next update, or reported again by the next run. */
  async #save(): Promise<void> {
    const { job, lines } = this.#unsaved
    if (!job && !lines) return
    this.#unsaved = { job: false, lines: false }
    const { store } = this.#deps
    try {
      if (lines) await store.logs.set(this.#job.id, this.#lines)
      if (job) await store.change(this.#job.id, (record) => this.merged(record))
    } catch (err) {
      this.#unsaved = { job: job || this.#unsaved.job, lines: lines || this.#unsaved.lines }
      this.log.warn({ err }, 'could not write the progress of a job')
    }
  }
}

/** The abort reason of `signal`. */
class InterruptedError extends Error {
  override readonly name = 'AbortError'
  constructor(readonly why: Interruption) {
    super(`The job was interrupted: ${why}`)
  }
}

const RETRY: unique symbol = Symbol.for('dealgate.Retry')

/** Thrown by `run` to run the job again after `afterMs`. The message becomes the phase of the job. */
export class Retry extends Error {
  override readonly name = 'Retry'
  readonly afterMs: number
  constructor(afterMs: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.afterMs = afterMs
  }

  /** Puts a job off for longer each time that it is put off with this message. */
  static again(
    { putOff }: Pick<RunningJob<unknown>, 'putOff'>,
    message: string,
    backoff: Backoff,
    cause?: Error,
  ): Retry {
    const times = putOff?.message === message ? putOff.times : 0
    return new Retry(pauseAfter(times + 1, backoff), message, { cause })
  }

  get [RETRY](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, RETRY)
  }
}
