import type { z } from 'zod'
import type { Needs } from '../../access/rights.js'
import { isMarked } from '../../common/errors/s3-error.js'
import type { RequestHead, Resource, S3Request } from '../../http/s3-request.js'
import type { Context } from '../../server/context.js'
import type { ExpansionSubject } from '../forms/expansion.js'
import type { RowAction } from '../forms/row-action.js'
import type { Job } from '../jobs/job.js'

/** A document that a call reads or returns: an object with members in PascalCase. */
export type Document = Readonly<Record<string, unknown>>

/**
 * Selects the requests that a call answers: on a bucket or object by `?x-<plugin>[-resource]=`, on the service by a
 * path `/-/<plugin>/v1/...`.
 */
export interface CallSelector<R extends Resource> {
  /** `PUT` only below `/-/`. */
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly resource: R
  /** Resource `service`: `/-/deal/v1/deals/{DealCid}`. */
  readonly path?: string
  /** Resources `bucket` and `object`: `x-deal-retrieve`. */
  readonly subresource?: string
}

/**
 * The declarative part of a call. The router, the codecs, the tables of docs/reference, OpenAPI and the listing of the
 * virtual bucket are derived from it.
 */
export interface CallDeclaration<
  R extends Resource,
  Body extends Document,
  Query extends Document,
  Result extends Document,
> {
  /** Name that the plugin chooses: `CreateObjectDeal`. */
  readonly name: string
  /** URL or section of the document that defines it. */
  readonly source: string
  /** One sentence that says what the call does. */
  readonly summary: string
  readonly on: CallSelector<R>
  /**
   * Query parameters in kebab-case, in addition to `format`, `max-items`, `continuation-token` and `raw`, which the
   * frame reads. Values arrive as strings: use z.coerce.
   */
  readonly query?: z.ZodType<Query>
  /**
   * Body of POST and PUT. Strict: an unknown member is InvalidArgument. Values may arrive as strings (forms, XML): the
   * frame converts them to the types of the schema.
   */
  readonly body?: z.ZodType<Body>
  /**
   * Alternative names of members, such as those of the specification: `{ FastRetrival: 'FastRetrieval' }`. Compared
   * without case, underscores and hyphens.
   */
  readonly aliases?: Readonly<Record<string, keyof Body & string>>
  readonly result: z.ZodType<Result>
  /** Root of the XML answer; default `<name>Result`. */
  readonly root?: string
  /**
   * Name of the list in the result that is answered in pages (`max-items`, `continuation-token`). The frame adds
   * IsTruncated and NextContinuationToken.
   */
  readonly pages?: keyof Result & string
  /**
   * The deal that an item of `pages`, or the result itself without pages, shows: the parameter `expand` adds members to
   * it, as plugins define them (`Expansion`). Without it, `expand` is refused.
   */
  expands?(item: Document, result: Document): ExpansionSubject | undefined
  /** Allows presigned URLs. Default false: a leaked URL must not show billing or spend money. GET only. */
  readonly presignable?: boolean
  /**
   * The call authorizes callers itself. Otherwise the frame requires, of an identity with rights of its own, the action
   * `<plugin>:<name>`, except for a GET on a bucket or object; and for a call on a bucket or object also the right to
   * read the whole bucket or that key.
   */
  readonly ownRules?: boolean
  /**
   * Who may call it; see `Operation.access`. Use `owner` for data of a bucket or object that only the plugin stores,
   * because no call to the gateway protects it. `public` requires `ownRules`. `bearer` on a call of the service also
   * accepts an unsigned request with `Authorization: Bearer`, without a caller: the call passes the token on to the
   * service that it is for, which decides.
   */
  readonly access: 'signed' | 'bearer' | 'owner' | 'public'
  /** The actions that policies decide about; default `<plugin>:<name>`. Requires `ownRules`. */
  readonly action?: RowAction
  /** The right in the bucket that the caller needs, checked before the body is read. Requires `ownRules`. */
  readonly needs?: Needs
  /**
   * The answer is a JSON document in a format of its own, such as OpenAPI. It has no XML form, and `format=xml` is
   * InvalidArgument.
   */
  readonly jsonOnly?: true
  /**
   * A list of objects in the result that the call also answers as CSV: for `format=csv`, or with `usual` where the
   * request names no format. Of a list with `pages`, a page; the header x-dealgate-next-continuation-token names the
   * next.
   */
  readonly csv?: { readonly list: keyof Result & string; readonly usual?: true }
  /**
   * Throws S3Error for a caller that may not make this request. Called before the body is read. Requires `ownRules`.
   */
  admit?(request: S3Request<R>, context: Context): Promise<void>
  /** See `Operation.deadlineMs`. The default for a call with a job is long enough for the longest wait. */
  readonly deadlineMs?: number
  /**
   * For the virtual bucket: yields the values of `{...}` in `path`, so that the resources can be listed. Without it, a
   * resource is listed if its path has no `{...}`.
   */
  members?(context: Context): AsyncIterable<Readonly<Record<string, string>>>
}

export interface CallRequest<R extends Resource, Body, Query> {
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
  /** @param next start of the next page, in a form that the call chooses; undefined for the last page */
  constructor(
    readonly items: readonly T[],
    readonly next: string | undefined,
  ) {}

  get [MARK](): true {
    return true
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, MARK)
  }
}

/** A result whose lists may also be async iterables or pages. */
export type Answer<Result> = {
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

/** The input of the job of a call. */
export interface JobOrder {
  /** The bucket or object that the job works on: `/bucket/key`. */
  readonly resource: string
  readonly input: unknown
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

/** The declaration of a call without its types: operations carry it for the descriptions. */
export interface CallFacts extends CallDeclaration<Resource, Document, Document, Document> {
  /** See JobCall. */
  readonly job?: string
  readonly spends?: boolean
  /** Present if the body is a content; see JobCall. */
  readonly pass?: unknown
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
