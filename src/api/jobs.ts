import type { ErrorFields } from '../../common/errors/s3-error.js'
import type { Session } from './identity.js'

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
  /** How often a client has had it run again; absent for never. A run after a restart of the server does not count. */
  readonly retries?: number
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

/** Consecutive Retry errors with the same message. */
export interface PutOff {
  readonly message: string
  /** Number of consecutive errors, at least 1. */
  readonly times: number
  /** Time of the first one, ms since 1970. */
  readonly since: number
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
