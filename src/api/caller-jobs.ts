import type { Session } from './identity.js'
import type { Job, JobQuery } from './jobs.js'
import type { S3Request } from './request.js'

/** A job that the caller of a request orders. */
export interface CallerOrder<Input> {
  /** Name of its kind: `<plugin>:<Operation>`. */
  readonly kind: string
  /** The bucket or object that the job works on: `/bucket`, `/bucket/key`. */
  readonly resource: string
  /** Plain JSON. */
  readonly input: Input
  /** Plain JSON: what a request with the same token must state again. Default `input`. */
  readonly terms?: unknown
  /** The client token, for requests that state it elsewhere than in `x-amz-client-token` or `Idempotency-Key`. */
  readonly token?: string | undefined
  /** Refuses a new job by an S3Error. It is not asked where the token has a job already. */
  admit?(): Promise<void>
}

/**
 * Jobs as the caller of a request sees and orders them. An identity with restricted rights sees the jobs that it
 * created; any other identity sees all.
 */
export interface CallerJobs {
  /**
   * The job of an id. Throws NoSuchJob, also for a job that the caller may not see.
   * @param kind name of the kind that the job must have; absent for any
   */
  get<Input = unknown, Result = unknown>(id: string, kind?: string): Promise<Job<Input, Result>>
  /** The jobs that the caller sees, newest first. */
  list(query: Omit<JobQuery, 'accessKeyId'>): Promise<Job[]>
  /**
   * Creates a job in the name of the caller, once per client token, and without one once per signature; durable when it
   * resolves. Returns the existing job for a known token.
   * @throws S3Error AccessDenied for an unsigned request, InvalidArgument for a malformed token,
   * IdempotencyParameterMismatch, DuplicateRequest, ServiceUnavailable, and what `admit` throws
   */
  order<Input>(request: S3Request, order: CallerOrder<Input>): Promise<Job<Input>>
  /**
   * The session whose policy limits what the caller orders; undefined for a caller that no session policy limits.
   * Credentials may end before the work does, so that it has no end.
   * @param by a session whose policy limits it, too: of another caller that has the work go on
   * @throws S3Error InvalidRequest after ten different policies
   */
  session(by?: Session): Session | undefined
}
