import type { Context } from '../context.js'
import { isMarked } from '../errors/across-copies.js'
import type { ErrorFields } from '../errors/s3-error.js'
import type { Logger } from '../log.js'

/**
 * S3 Batch's words for the states of a job (https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-job-status.html) as far as ours have them, and `Unknown`:
 * something was sent that cannot be taken back, and nobody knows yet what became of it.
 */
export type JobStatus = 'New' | 'Active' | 'Unknown' | 'Cancelling' | 'Complete' | 'Failed' | 'Cancelled'

export interface JobProgress {
  /** What it is at, one word of the kind's own: `Packing`. */
  readonly phase: string
  readonly tasks: { readonly total: number; readonly succeeded: number; readonly failed: number }
  readonly bytes: { readonly done: number; readonly total: number }
}

/** Why a job failed: an S3Error, as far as it can be kept. */
export interface JobFailure {
  readonly code: string
  readonly message: string
  /** HTTP status of a code that is a plugin's own; absent for those of errors/codes.ts. */
  readonly status?: number
  readonly fields?: ErrorFields
}

/** Work that may outlive the request that asked for it, and the process. Plain JSON. */
export interface Job<Input = unknown, Result = unknown> {
  /** `j-` and a ULID: sorts by time. */
  readonly id: string
  /** Name of its kind, such as `deal:CreateObjectDeal`. */
  readonly operation: string
  readonly status: JobStatus
  /** What it is about: `/bucket/key`, `/bucket`. */
  readonly resource: string
  readonly input: Input
  /** Of whoever asked; '' when the server works by itself. */
  readonly accessKeyId: string
  readonly token?: string
  /** Hex SHA-256 of everything that makes the request what it is. */
  readonly requestHash?: string
  readonly progress: JobProgress
  readonly result?: Result
  readonly failure?: JobFailure
  /** Times in ms since 1970. */
  readonly created: number
  readonly updated: number
  readonly links?: Readonly<Record<string, string>>
}

export interface NewJob<Input> {
  readonly kind: string
  readonly resource: string
  readonly input: Input
  readonly accessKeyId: string
  /** x-amz-client-token. The same token of the same identity with the same `requestHash` is the same job; with another: IdempotencyParameterMismatch. */
  readonly token?: string
  readonly requestHash?: string
  /**
   * Without a token: refused with DuplicateRequest when there is a job of the same identity and hash that is younger than this, ms, and that has not failed. With 0 it is
   * not refused, but what comes after it may be.
   */
  readonly refuseRepeatsWithin?: number
  /** Remembered, and not begun before `release`. After a restart the kind's `held` decides. */
  readonly held?: boolean
}

/** What is done, and how it goes on after the process died in the middle. */
export interface JobKind<Input = unknown, Result = unknown> {
  /** `<plugin>:<Operation>` */
  readonly name: string
  /**
   * Does the work; called again from the start after a restart that found it before `commit`. It may take hours, and is told of in the log when nothing was reported or
   * noted for one. Once `signal` has fired it is waited for half a minute more: what comes of it then counts for nothing. What it throws fails the job, but for OutcomeUnknown (errors/outcome-unknown.ts),
   * which makes it `Unknown`, and Retry (below). Between `commit` and `uncommit` only an S3Error below 500 fails it, for somebody has answered; anything else, a Retry
   * too, makes it `Unknown`.
   */
  run(job: RunningJob<Input>): Promise<Result>
  /**
   * What became of a job that is `Unknown`; asked at start and then again, ever less often, until it says. `done`: it has happened. `not-done`: it surely has not; the
   * job runs again. undefined: not known yet. Told to end by `signal` when nothing was reported or noted for an hour, and asked again.
   */
  reconcile?(job: RunningJob<Input>): Promise<{ readonly done: Result } | 'not-done' | undefined>
  /** After a restart, or `leave`: what to do with a job that was held. Default `drop`. It is asked again, ever less often, until it says. */
  held?(job: RunningJob<Input>): Promise<'release' | 'drop'>
  /** Such jobs at once in this process; default 4. */
  readonly concurrency?: number
}

const RETRY: unique symbol = Symbol.for('dealgate.Retry')

/** Thrown by `run`: to be tried again after `afterMs`; the reason stays with the job as its phase. */
export class Retry extends Error {
  override readonly name = 'Retry'
  readonly afterMs: number
  constructor(afterMs: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.afterMs = afterMs
  }

  get [RETRY](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, RETRY)
  }
}

/** That a job was put off by Retry, with the same message each time. */
export interface PutOff {
  readonly message: string
  /** In a row, at least 1. */
  readonly times: number
  /** When for the first time, ms since 1970. */
  readonly since: number
}

/** A job, as its kind sees it. */
export interface RunningJob<Input> {
  readonly job: Job<Input>
  readonly input: Input
  /** Absent in the first run, and in one that somebody asked for anew. Kept over restarts. */
  readonly putOff?: PutOff | undefined
  /** Of the identity that asked, looked up now; of the server itself where nobody asked. */
  readonly context: Context
  readonly log: Logger
  /** Fires when the job is cancelled or the server stops. */
  readonly signal: AbortSignal
  /** False once another server may be at the job, or this run of it was given up: what is on record for the job is not this run's to take back any more. */
  owned(): boolean
  /** Seen at once, durable within a second. */
  report(progress: Partial<JobProgress>): void
  /** Adds a line to the job's log, of which the last 100 are kept. */
  note(line: string): void
  /** Adds to `links`. */
  link(name: string, path: string): void
  /**
   * To be awaited before something is sent that cannot be taken back: durable when it resolves. If the process dies between here and the end of `run`, the
   * job is `Unknown`, and `reconcile` decides. Rejects when the job was cancelled or the server stops: let that through.
   */
  commit(): Promise<void>
  /** Takes `commit` back: what was sent surely did nothing. Rejects when the job is not `owned` any more. */
  uncommit(): Promise<void>
}

export interface JobQuery {
  /** An id, exclusive: only older ones. */
  readonly before?: string | undefined
  readonly limit: number
  readonly accessKeyId?: string | undefined
  /** Whose kinds. */
  readonly plugin?: string | undefined
  readonly status?: JobStatus | undefined
  readonly matches?: (job: Job) => boolean
}

/** Who may see which jobs: an identity with rights of its own sees those that it asked for, any other all. */
export interface Jobs {
  /** Registers a kind; before `start` only. Throws Error when the name is taken. */
  register(kind: JobKind<never, unknown>): void
  /** Durable when it resolves; the same job again for the same token. Throws IdempotencyParameterMismatch, DuplicateRequest, ServiceUnavailable. Input is plain JSON. */
  create<Input>(job: NewJob<Input>): Promise<Job<Input>>
  /** The job of a token, if there is one. Throws IdempotencyParameterMismatch. */
  find(asked: {
    readonly accessKeyId: string
    readonly token: string
    readonly requestHash?: string
  }): Promise<Job | undefined>
  /** Lets a held job begin, with another input if one is given. Nothing happens to one that is not held any more. Throws NoSuchJob. */
  release<Input>(id: string, input?: Input): Promise<void>
  /** Forgets a held job. */
  drop(id: string): Promise<void>
  /** Whoever holds a job cannot say whether it is to begin: its kind's `held` does, as after a restart, as soon as it can. Never rejects. */
  leave(id: string): Promise<void>
  get(id: string): Promise<Job | undefined>
  /** Newest first. */
  list(query: JobQuery): Promise<Job[]>
  /** Resolves with the job when it is `Complete`, `Failed`, `Cancelled`, or as it is after `ms` or when the signal fires. */
  wait(id: string, ms: number, signal?: AbortSignal): Promise<Job>
  /** A job that has committed is not cancelled: InvalidRequest. */
  cancel(id: string): Promise<Job>
  /** Runs a failed or cancelled job again, or an unknown one that somebody knows did nothing. Throws InvalidRequest for any other. */
  retry(id: string): Promise<Job>
  /** Settles an unknown one by hand. */
  resolve(id: string, outcome: { readonly result: unknown } | { readonly failure: JobFailure }): Promise<Job>
  log(id: string): Promise<readonly { readonly time: number; readonly line: string }[]>
}
