import type { Session } from '../../auth/caller.js'
import { type ErrorFields, isMarked } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import type { Context } from '../../server/context.js'

/**
 * State of a job, in the terms of S3 Batch Operations
 * (https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-job-status.html) as far as they apply. `Unknown` is
 * our own: the job has sent something irrevocable, and its outcome is not known yet.
 */
export type JobStatus = 'New' | 'Active' | 'Unknown' | 'Cancelling' | 'Complete' | 'Failed' | 'Cancelled'

export interface JobProgress {
  /** Current phase, one word that the kind chooses: `Packing`. */
  readonly phase: string
  readonly tasks: { readonly total: number; readonly succeeded: number; readonly failed: number }
  readonly bytes: { readonly done: number; readonly total: number }
}

/** Why a job failed: the serializable part of an S3Error. */
export interface JobFailure {
  readonly code: string
  readonly message: string
  /** HTTP status of a code that a plugin defines; absent for the codes of common/errors/codes.ts. */
  readonly status?: number
  readonly fields?: ErrorFields
}

/** Work that may outlive the request that created it, and the process. Plain JSON. */
export interface Job<Input = unknown, Result = unknown> {
  /** `j-` and a ULID, so that ids sort by creation time. */
  readonly id: string
  /** Name of its kind, such as `deal:CreateObjectDeal`. */
  readonly operation: string
  readonly status: JobStatus
  /** The bucket or object that the job works on: `/bucket/key`, `/bucket`. */
  readonly resource: string
  readonly input: Input
  /** Access key id of the identity that created the job; '' for the server itself. */
  readonly accessKeyId: string
  /** The session with a policy that created the job, if one did: the job may do no more than that. */
  readonly session?: Session
  readonly token?: string
  /** Hex SHA-256 of everything that identifies the request. */
  readonly requestHash?: string
  /** Hash of the request's signature; set if the request carried no token. */
  readonly signature?: string
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
  /** `Context.jobs` of a request adds that of its caller. */
  readonly session?: Session
  /**
   * x-amz-client-token. A request with the same token, identity and `requestHash` gets the same job; with another hash
   * it fails with IdempotencyParameterMismatch.
   */
  readonly token?: string
  readonly requestHash?: string
  /**
   * Age, ms. Without a token, `create` throws DuplicateRequest if the same identity has a job with the same hash that
   * is younger than this and has not failed. 0 accepts this request, and still records it, so that a later one may be
   * refused.
   */
  readonly refuseRepeatsWithin?: number
  /**
   * Hash of the request's signature. Without a token, `create` throws DuplicateRequest if this signature has already
   * created a job that is still on record, whatever its age; if that job has failed and the request is the same,
   * `create` returns that job. A client signs each request anew, at another time, so a sender that repeats a signature
   * is not the client.
   */
  readonly signature?: string | undefined
  /** Stored, but not started before `release`. After a restart the kind's `held` decides. */
  readonly held?: boolean
}

/** How to do one kind of work, and how to continue after a crash. */
export interface JobKind<Input = unknown, Result = unknown> {
  /** `<plugin>:<Operation>` */
  readonly name: string
  /**
   * Does the work. It is called again from the start after a restart that interrupted it before `commit`. It may take
   * hours; a warning is logged when it neither reports nor notes anything for one. Once `signal` has fired it has half
   * a minute to finish; a later result is discarded. An error fails the job, except OutcomeUnknown
   * (common/errors/outcome-unknown.ts), which makes it `Unknown`, and Retry (below). Between `commit` and `uncommit`
   * only an S3Error below 500 fails the job, because then the other side has answered; any other error, a Retry
   * included, makes it `Unknown`.
   */
  run(job: RunningJob<Input>): Promise<Result>
  /**
   * Finds out the outcome of a job that is `Unknown`. It is called at start and then again, with growing pauses, until
   * it resolves to a decision. `done`: the work has happened. `not-done`: it certainly has not, and the job runs again.
   * undefined: not known yet. If it neither reports nor notes anything for an hour, `signal` ends it, and it is called
   * again.
   */
  reconcile?(job: RunningJob<Input>): Promise<{ readonly done: Result } | 'not-done' | undefined>
  /**
   * Decides, after a restart or `leave`, what to do with a held job. Default `drop`. After an error it is called again,
   * with growing pauses.
   */
  held?(job: RunningJob<Input>): Promise<'release' | 'drop'>
  /** Largest number of jobs of this kind that run at once in this process; default 4. */
  readonly concurrency?: number
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

  get [RETRY](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, RETRY)
  }
}

/** Consecutive Retry errors with the same message. */
export interface PutOff {
  readonly message: string
  /** Number of consecutive errors, at least 1. */
  readonly times: number
  /** Time of the first one, ms since 1970. */
  readonly since: number
}

/** A job as its kind sees it. */
export interface RunningJob<Input> {
  readonly job: Job<Input>
  readonly input: Input
  /** Absent in the first run and after `retry`. Survives restarts. */
  readonly putOff?: PutOff | undefined
  /**
   * Context of the identity that created the job, looked up for this run, with the policy of the session that did; that
   * of the server itself if no identity did.
   */
  readonly context: Context
  readonly log: Logger
  /** Fires when the job is cancelled or the server stops. */
  readonly signal: AbortSignal
  /**
   * False once another server may be running the job, or this run was abandoned. The run must then no longer change
   * what is on record for the job.
   */
  owned(): boolean
  /** Updates the progress: visible at once, durable within a second. */
  report(progress: Partial<JobProgress>): void
  /** Appends a line to the job's log, which keeps the last 100. */
  note(line: string): void
  /** Adds to `links`. */
  link(name: string, path: string): void
  /**
   * Await it before sending anything irrevocable; it is durable when it resolves. If the process dies between here and
   * the end of `run`, the job becomes `Unknown`, and `reconcile` decides. Rejects when the job was cancelled or the
   * server stops: do not catch that error.
   */
  commit(): Promise<void>
  /** Reverts `commit`, when what was sent certainly had no effect. Rejects when the job is no longer `owned`. */
  uncommit(): Promise<void>
}

export interface JobQuery {
  /** A job id, exclusive: lists older jobs only. */
  readonly before?: string | undefined
  readonly limit: number
  readonly accessKeyId?: string | undefined
  /** Lists jobs of this plugin's kinds only. */
  readonly plugin?: string | undefined
  readonly status?: JobStatus | undefined
  readonly matches?: (job: Job) => boolean
}

/**
 * The jobs of a server. An identity with restricted rights sees the jobs that it created; any other identity sees all.
 */
export interface Jobs {
  /** Registers a kind, before `start` only. Throws Error if the name is taken. */
  register(kind: JobKind<never, unknown>): void
  /**
   * Creates a job; durable when it resolves. Returns the existing job for a known token. `input` is plain JSON. Throws
   * IdempotencyParameterMismatch, DuplicateRequest, ServiceUnavailable.
   */
  create<Input>(job: NewJob<Input>): Promise<Job<Input>>
  /** Finds the job of a token. Throws IdempotencyParameterMismatch. */
  find(asked: {
    readonly accessKeyId: string
    readonly token: string
    readonly requestHash?: string
  }): Promise<Job | undefined>
  /**
   * Declares that what `pass` sends next cannot be taken back: the held job cannot be cancelled from now on, durably.
   * Throws OperationAborted if it was.
   */
  commitHeld(id: string): Promise<void>
  /**
   * Starts a held job, with another input if one is given. Does nothing if the job is no longer held. Throws NoSuchJob.
   */
  release<Input>(id: string, input?: Input): Promise<void>
  /** Removes a held job. */
  drop(id: string): Promise<void>
  /**
   * Gives up a held job without a decision: the kind's `held` decides as soon as it can, as after a restart. Never
   * rejects.
   */
  leave(id: string): Promise<void>
  get(id: string): Promise<Job | undefined>
  /** Newest first. */
  list(query: JobQuery): Promise<Job[]>
  /**
   * Waits until the job is `Complete`, `Failed` or `Cancelled`, until `ms` have passed or until the signal fires.
   * Resolves with the job as it is then.
   */
  wait(id: string, ms: number, signal?: AbortSignal): Promise<Job>
  /**
   * Cancels a job. Throws InvalidRequest for a job that has committed.
   * @param signature hash of the signature of the request, here and below. A second call with the same one changes
   * nothing and resolves with the job as it is.
   */
  cancel(id: string, signature?: string): Promise<Job>
  /** Runs a job that waits for a retry now. Does nothing to any other job. */
  wake(id: string): Promise<void>
  /**
   * Runs a failed or cancelled job again, or an `Unknown` one that the caller knows to have had no effect. Throws
   * InvalidRequest for any other.
   */
  retry(id: string, signature?: string): Promise<Job>
  /** Sets the outcome of an `Unknown` job by hand. */
  resolve(
    id: string,
    outcome: { readonly result: unknown } | { readonly failure: JobFailure },
    signature?: string,
  ): Promise<Job>
  log(id: string): Promise<readonly { readonly time: number; readonly line: string }[]>
}
