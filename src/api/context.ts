import type { z } from 'zod'
import type { Logger } from '../../common/log.js'
import type { Authorizer, Checks } from './access.js'
import type { Acls } from './acls.js'
import type {
  AdmittedWrite,
  ArchiveAccess,
  ClassWrite,
  RestoreOrder,
  RestoreOutcome,
  TransitionedObject,
} from './archive.js'
import type { CallerJobs } from './caller-jobs.js'
import type { CreationTimes, Gateway } from './gateway.js'
import type { Hooks } from './hooks.js'
import type { AuthenticateForm, Caller, Session } from './identity.js'
import type { InventoryFields } from './inventory.js'
import type { Job, JobFailure, JobProgress, JobQuery, NewJob, PutOff } from './jobs.js'
import type { Limits } from './limits.js'
import type { ReplyHeaders, RequestHead, S3Request } from './request.js'
import type { ServerFacts } from './server-facts.js'
import type { BucketSettings } from './settings.js'
import type { State } from './state.js'
import type { Store, StoredObject } from './store.js'

/** Returns true for a name of user metadata, lower-case and without prefix, that a plugin adds to replies. */
export type OutputMetadata = (name: string) => boolean

/** A deal that an answer shows. */
export interface ExpansionSubject {
  readonly bucket: string
  /** Absent for a deal of a whole bucket. */
  readonly key?: string | undefined
  readonly dealCid: string
  /** UUID of the task by which it was made, if known. */
  readonly taskUuid?: string | undefined
  /** Id of the job that led to it, if known. */
  readonly jobId?: string | undefined
}

/** A meaning of a value of the parameter `expand`, which adds a member to each deal that an answer shows. */
export interface Expansion {
  /** The value: `task`. */
  readonly name: string
  /** Name of the member, in PascalCase. */
  readonly member: string
  /** One sentence about the member. */
  readonly summary: string
  /** Form of the member, for the descriptions of the calls; any object if absent. */
  readonly result?: z.ZodType
  /**
   * Returns the member for each of the deals, in their order; undefined for none. Gets the caller's context, and
   * returns only what the caller may see. Throws S3Error.
   */
  join(deals: readonly ExpansionSubject[], context: Context): Promise<readonly (object | undefined)[]>
}

/** A storage class that a plugin implements, in addition to the classes that store objects normally. */
export interface StorageClass {
  /** Value of x-amz-storage-class: `GLACIER`. Must not be one that every server has. */
  readonly name: string
  /**
   * The action that an identity with rights of its own needs in its list to store objects in this class, or to let
   * rules do so: `deal:CreateObjectDeal`. Absent: the right to write suffices.
   */
  readonly action?: string
  /** True for a class that holds current objects alone: no rule moves another version to it. */
  readonly currentOnly?: boolean
  /**
   * Called before the body of a write is read. Throws S3Error (InvalidStorageClass and others) if the object cannot be
   * kept in this class; then nothing is stored. Absent: only lifecycle rules move objects to this class.
   */
  admit?(write: ClassWrite, context: Context): Promise<AdmittedWrite>
  /**
   * Moves an object to this class on behalf of a lifecycle rule. Must be idempotent: it may be called again for an
   * object that is already there. An error is logged, and the call is retried. Resolves false if there was nothing to
   * do.
   */
  transition(object: TransitionedObject): Promise<boolean>
  /**
   * Handles RestoreObject for an object that is archived or temporarily restored. It is not called for an object that
   * is readable without a restore or whose restore is in progress. Throws RestoreAlreadyInProgress, InvalidTier,
   * GlacierExpeditedRetrievalNotAvailable ...
   */
  restore?(object: StoredObject, order: RestoreOrder, context: Context): Promise<RestoreOutcome>
  /**
   * Called when a caller that may read the object has requested its bytes, which are archived; the class may start a
   * restore. Resolves with headers for the refusal. An error is logged and changes nothing.
   */
  missed?(object: StoredObject, context: Context): Promise<ReplyHeaders>
}

/** Storage classes by name. */
export type StorageClasses = ReadonlyMap<string, StorageClass>

/** How to do one kind of work, and how to continue after a crash. */
export interface JobKind<Input = unknown, Result = unknown> {
  /** `<plugin>:<Operation>` */
  readonly name: string
  /**
   * Does the work. It is called again from the start after a restart that interrupted it before `commit`. It may take
   * hours; a warning is logged when it neither reports nor notes anything for one. Once `signal` has fired it has half
   * a minute to finish; a later result is discarded. An error fails the job, except OutcomeUnknown
   * (common/errors/s3-error.ts), which makes it `Unknown`, and Retry (below). Between `commit` and `uncommit`
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
  /**
   * Throws AccessDenied unless the caller of a request holds every right that the job will use, for a request that has
   * it run again, or go on. The policy of a session limits the job from then on in any case. The caller has the action
   * `name` on the resource of the job already. Absent: the right to read the resource suffices besides.
   */
  admitAgain?(job: Job<Input>, request: S3Request, context: Context): Promise<void>
  /** Largest number of jobs of this kind that run at once in this process; default 4. */
  readonly concurrency?: number
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
   * @param by the session that asks for it, to whose policy the job is limited from now on; `Context.jobs` of a request
   * adds that of its caller
   */
  retry(id: string, signature?: string, by?: Session): Promise<Job>
  /**
   * Throws AccessDenied unless the caller of the request may have the job run again, or go on: it must hold every right
   * that the job will use, as far as they are known now. The kind of the job decides (`JobKind.admitAgain`), after it
   * is certain that the job acts as the account of the caller.
   */
  admitAgain(job: Job, request: S3Request, context: Context): Promise<void>
  /** Throws AccessDenied unless the job acts as the account of the caller. */
  requireSameAccount(job: Pick<Job, 'accessKeyId' | 'session'>, context: Context): Promise<void>
  /** Sets the outcome of an `Unknown` job by hand. */
  resolve(
    id: string,
    outcome: { readonly result: unknown } | { readonly failure: JobFailure },
    signature?: string,
  ): Promise<Job>
  log(id: string): Promise<readonly { readonly time: number; readonly line: string }[]>
}

/** What a browser form says in place of the head of its request. */
export interface FormFacts {
  /** The signer of the form, or of the request. */
  readonly caller: Caller | undefined
  readonly key: string
  readonly headers: RequestHead['headers']
}

/** What lifecycle rules judge an object by. */
type ListedFacts = Pick<StoredObject, 'key' | 'size' | 'lastModified' | 'tags'>

/** Registrations of all plugins. */
export interface Registered {
  readonly hooks: Hooks
  /** Storage classes of plugins, in addition to those that S3 clients may name without effect. */
  readonly storageClasses: StorageClasses
  /** Matches user metadata that plugins add to responses. If a client sends it back, it is not stored. */
  readonly outputMetadata: OutputMetadata
  /** Meanings of values of the parameter `expand`. */
  readonly expansions: readonly Expansion[]
  /** Columns of inventories. */
  readonly inventories: readonly InventoryFields[]
  /** Names of the actions of all plugins, without those of S3. */
  readonly actions: readonly string[]
}

/** Everything that an operation uses in addition to the request. */
export interface Context {
  /** Absent for an anonymous request. Only operations whose `access` allows them receive such requests. */
  readonly caller: Caller | undefined
  /** The gateway, accessed with the caller's account and restricted to the caller's rights. */
  readonly gateway: Gateway
  /** Objects: the gateway's view joined with the records of this proxy. */
  readonly store: Store
  readonly checks: Checks
  /** Decides what this request may do, by the policies and ACLs of buckets and identities. */
  readonly authorizer: Authorizer
  /** An operation changes it only when it is for the owner of the bucket: see state/records/state-of-operation.ts. */
  readonly state: State
  /**
   * Settings of buckets that the gateway cannot hold. Only the owner of a bucket can change them: see
   * state/records/bucket-settings.ts.
   */
  readonly settings: BucketSettings
  /** Distinguishes the current bucket of a name from deleted buckets of the same name. */
  readonly creationTimes: Pick<CreationTimes, 'now'>
  readonly server: ServerFacts
  readonly limits: Limits
  readonly log: Logger
  readonly plugins: Registered
  /** Presence and restores of objects in archive classes. */
  readonly archive: ArchiveAccess
  /** Durable background jobs, which outlive the request. */
  readonly jobs: Jobs
  /** Jobs as the caller sees and orders them. */
  readonly callerJobs: CallerJobs
  /** Canonical id of the account that the caller belongs to; that of the server for an unsigned request. */
  readonly canonicalId: string
  /** The ACLs of objects. */
  readonly acls: Acls
  /**
   * Reads the lifecycle rules of a bucket. Resolves with what says when they remove a current object, ms since 1970;
   * undefined for never.
   */
  readonly expirations: (bucket: string) => Promise<(object: ListedFacts) => number | undefined>
  /** The gateway, accessed with the server's own account regardless of the caller. */
  readonly own: Pick<Gateway, 'listBuckets' | 'listPolicies'>
  /**
   * Returns the context of another caller, such as the signer of a form's policy. For undefined, an anonymous caller,
   * the gateway's own policies decide about access.
   */
  readonly as: (caller: Caller | undefined) => Context
  /** Identifies the signer of a form's policy document. */
  readonly authenticateForm: AuthenticateForm
  /** Set by an operation that has read a browser form: the audit log records it. */
  form?: FormFacts
}
