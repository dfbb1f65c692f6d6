import type { Needs } from '../../access/rights.js'
import type { Reply } from '../../http/reply.js'
import type { Method, Resource, S3Request } from '../../http/s3-request.js'
import type { Context } from '../../server/context.js'
import type { CallFacts } from '../calls/call.js'
import type { RowAction } from './row-action.js'

/**
 * Selects the requests that an operation answers. If several operations match, the most specific one wins; see
 * src/plugins/table.ts.
 */
export interface Selector<R extends Resource> {
  readonly method: Method
  readonly resource: R
  /**
   * For the resource `service` only: a path such as `/-/live`, or with named segments `/-/deal/v1/providers/{MinerId}`.
   * Default `/`.
   */
  readonly path?: string
  /** A GET operation that also answers HEAD. */
  readonly head?: true
  /** Query keys that must be present; `name=value` requires that value. */
  readonly query?: readonly string[]
  /** A header that must be present, lower-case. */
  readonly header?: string
  /** Query keys that may be present. Any other is NotImplemented. */
  readonly params?: readonly string[]
  /** Headers that demand something (src/plugins/table.ts) and that the operation supports; others: NotImplemented. */
  readonly headers?: readonly string[]
}

/** See Operation.access. */
export const ACCESSES = ['signed', 'bearer', 'anonymous', 'public', 'owner'] as const
export type Access = (typeof ACCESSES)[number]

/** An operation: its name, the requests that it answers, and its implementation. */
export interface Operation<R extends Resource = Resource> {
  /** Name in the S3 API (`DeleteBucket`), or a name that the plugin chooses. */
  readonly name: string
  /** URL or section of the document that defines it. */
  readonly source: string
  /**
   * Differences from the operation that `source` describes, in one or two sentences for docs/s3-compatibility.md.
   * Absent: none.
   */
  readonly partly?: string
  readonly on: Selector<R>
  /**
   * Who may call it. A server does not start with an operation that does not declare it.
   * - `signed`: every key pair; the gateway decides the rest, with the caller's own session.
   * - `bearer`: also unsigned requests of the service with `Authorization: Bearer`, whose token the operation passes on
   *   to the service that it is for.
   * - `anonymous`: also unsigned requests, as far as the gateway's own bucket policies allow: the gateway gets them
   *   without a log-in.
   * - `public`: every request; the operation itself decides.
   * - `owner`: a key pair of the gateway account that owns the bucket, for operations that read or change data that
   *   only this server stores, because no call to the gateway protects it. No other operation can change
   *   `Context.state`: see state/records/state-of-operation.ts.
   */
  readonly access: Access
  /**
   * The actions that policies decide about, such as `s3:GetObject`; for an operation of a plugin `<plugin>:<Name>`. A
   * server does not start with an operation that does not declare them. `defineCall` declares `<plugin>:<name>`.
   */
  readonly action: RowAction
  /**
   * The right that the caller needs, checked before the body can be read. Mandatory for a PUT or POST on a bucket or an
   * object that is not made by `defineCall`.
   */
  readonly needs?: Needs
  /**
   * Only for operations of the server itself: the operation changes multipart uploads. These belong to the key pair
   * that began them, not to the owner of the bucket.
   */
  readonly keeps?: 'uploads'
  /**
   * For operations of plugins: how long `run` may take without answering and without a byte of the body arriving, ms,
   * before the request fails with InternalError. Default `Limits.pluginDeadlineMs`.
   */
  readonly deadlineMs?: number
  /** The declaration that `defineCall` was given; absent for operations of S3. A GET call also answers HEAD. */
  readonly call?: CallFacts
  /**
   * Set by `defineCall`. Throws Error for members of its schemas that have like names. Called when a plugin is loaded
   * or given to `createProxy`.
   */
  readonly checkCall?: () => void
  /** Returns a Reply or throws an S3Error. Has no access to Express. */
  run(request: S3Request<R>, context: Context): Promise<Reply>
}

/** Types an operation; returns it unchanged. */
export function defineOperation<R extends Resource>(operation: Operation<R>): Operation<R> {
  return operation
}
