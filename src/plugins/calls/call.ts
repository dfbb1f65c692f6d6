import { isMarked } from '../../../common/errors/s3-error.js'
import type { Context } from '../../api/context.js'
import type { Job } from '../../api/jobs.js'
import type { CallDeclaration, Document } from '../../api/operation.js'
import type { ReplyHeaders, RequestHead, Resource, S3Request } from '../../api/request.js'

interface CallRequest<R extends Resource, Body, Query> {
  readonly request: S3Request<R>
  readonly body: Body
  readonly query: Query
  /** The requested page, for a call that builds its pages itself. */
  readonly page: PageRequest
}

export interface PageRequest {
  /** Largest number of items, 1 to 1000. */
  readonly limit: number
  /** `next` of the previous page, or a value that a client invented; undefined for the first page. */
  readonly from: string | undefined
}

const MARK: unique symbol = Symbol.for('dealgate.PageOf')

/** A page that the call has built itself. `instanceof` also accepts pages of another copy of this package. */
export class PageOf<T> {
  /**
   * @param next start of the next page, in a form that the call chooses; undefined for the last page
   * @throws TypeError for an empty `next`, which a client would take for the first page
   */
  constructor(
    readonly items: readonly T[],
    readonly next: string | undefined,
  ) {
    if (next === '') throw new TypeError('the next page must have a start: pass undefined for the last page')
  }

  get [MARK](): true {
    return true
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, MARK)
  }
}

/** A result whose lists may also be async iterables or pages. */
type Answer<Result> = {
  readonly [Name in keyof Result]: Result[Name] extends readonly (infer Item)[]
    ? Result[Name] | AsyncIterable<Item> | PageOf<Item>
    : Result[Name]
}

/** A call that answers without a job. */
export interface AnsweredCall<
  R extends Resource,
  Body extends Document,
  Query extends Document,
  Result extends Document,
> extends CallDeclaration<R, Body, Query, Result> {
  /**
   * With `pages`, the list is complete or an async iterable, of which the frame takes a page; or a PageOf for the
   * requested `page`.
   */
  answer(call: CallRequest<R, Body, Query>, context: Context): Promise<Answer<Result>>
  /** HTTP status of the answer; default 200. */
  status?(result: Answer<Result>): 200 | 202
  /** Id of a job that continues the work. The reply names it in x-dealgate-job-id and its address in Location. */
  jobId?(result: Answer<Result>): string | undefined
}

interface JobOrder {
  /** The bucket or object that the job works on: `/bucket/key`. */
  readonly resource: string
  readonly input: unknown
  /** Headers of the answer to the request that creates the job. */
  readonly headers?: ReplyHeaders
}

/**
 * A call that creates a job. The answer is the result of the job if it ends within `Prefer: wait=N` (default 20 s, 0 to
 * 300), otherwise 202 with the job. Accepts x-amz-client-token and Idempotency-Key. An identity with rights of its own
 * needs the action `<plugin>:<name>` in its list.
 */
export interface JobCall<R extends Resource, Body extends Document, Query extends Document, Result extends Document>
  extends CallDeclaration<R, Body, Query, Result> {
  /** Name of the JobKind, whose result is a `Result`. */
  readonly job: string
  /**
   * The call can cost money: the same request within 60 s without a token is DuplicateRequest, unless the body has
   * `Force`.
   */
  readonly spends: boolean
  /**
   * Checks everything that can be checked, without side effects. Throws S3Error. Not called for a request that repeats
   * a token.
   */
  order(call: CallRequest<R, Body, Query>, context: Context): Promise<JobOrder>
  /**
   * The body is a content of any size, not a document: the call passes `request.body` on while its job is held. It
   * resolves with the input that the job then runs with. If it rejects, nothing is left of the job, so that the client
   * can send the request again; once the other side may have the content, it resolves, and the job finds out. The
   * kind's `held` decides after the process died in between. `input` of the order must be an object.
   */
  pass?(call: CallRequest<R, Body, Query>, held: Job, context: Context): Promise<object>
}

/** Registered globally, because a plugin may bring its own copy of this package. */
const RAW: unique symbol = Symbol.for('dealgate.raw')

/** Attaches the upstream answer to a result, for `?raw=1`. Text is sent as it is, any other value as JSON. */
export function withRaw<Result extends object>(result: Result, raw: unknown): Result {
  return { ...result, [RAW]: raw }
}

/** Returns the value that `withRaw` attached; undefined if there is none. */
export function rawOf(result: object): unknown {
  return (result as { readonly [RAW]?: unknown })[RAW]
}

const CHANGED: unique symbol = Symbol.for('dealgate.changed')

/** Attaches what the call has changed to its result, for the audit log and the list of changes: names, no secrets. */
export function withChanges<Result extends object>(result: Result, changed: readonly string[]): Result {
  return { ...result, [CHANGED]: changed }
}

/** Returns what `withChanges` attached. */
export function changesOf(result: object): readonly string[] | undefined {
  return (result as { readonly [CHANGED]?: readonly string[] })[CHANGED]
}

type Addressed = Pick<RequestHead, 'rawPath' | 'path' | 'host' | 'hostBucket' | 'secure'>

/**
 * Returns the part before `/-/` of an address that the client of this request can follow: the path that this server is
 * mounted at. If the host names a bucket, on which `/-/` would be a key, the address also names the service's own host.
 */
export function serviceAddress(request: Addressed): string {
  const { rawPath, path, host, hostBucket, secure } = request
  const mount = rawPath.endsWith(path) ? rawPath.slice(0, -path.length) : ''
  if (hostBucket === undefined) return mount
  return `${secure ? 'https' : 'http'}://${host.slice(hostBucket.length + 1)}${mount}`
}

export function jobAddress(request: Addressed, id: string): string {
  return `${serviceAddress(request)}/-/jobs/v1/${id}`
}
