import type { z } from 'zod'
import type { Context } from '../context.js'
import { isMarked } from '../errors/across-copies.js'
import type { Resource, S3Request } from '../request/s3-request.js'

/** Documents in and out of a call are objects with members in PascalCase. */
export type Document = Readonly<Record<string, unknown>>

/** Which requests a call answers: bucket and object ones by `?x-<plugin>[-resource]=`, those of the service by a path `/-/<plugin>/v1/...`. */
export interface CallSelector<R extends Resource> {
  /** `PUT` on `/-/` only. */
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly resource: R
  /** Resource `service`: `/-/deal/v1/deals/{DealCid}`. */
  readonly path?: string
  /** Resources `bucket` and `object`: `x-deal-retrieve`. */
  readonly subresource?: string
}

/** What of a call is data: from it come the router, the codecs, the tables of the README, OpenAPI and the list of the virtual bucket. */
export interface CallDeclaration<
  R extends Resource,
  Body extends Document,
  Query extends Document,
  Result extends Document,
> {
  /** The plugin's own word: `CreateObjectDeal`. */
  readonly name: string
  /** The page or section that defines it. */
  readonly source: string
  /** What it does, in a sentence. */
  readonly summary: string
  readonly on: CallSelector<R>
  /** Query parameters in kebab-case, beside `format`, `max-items`, `continuation-token`, `raw` which the frame reads. Values arrive as strings: use z.coerce. */
  readonly query?: z.ZodType<Query>
  /** Body of POST and PUT. Strict: an unknown member is InvalidArgument. Values may arrive as strings (forms, XML): the frame turns them into what the schema wants. */
  readonly body?: z.ZodType<Body>
  /** Other names that members may be sent by, such as the specification's own: `{ FastRetrival: 'FastRetrieval' }`. Compared without case and underscores. */
  readonly aliases?: Readonly<Record<string, keyof Body & string>>
  readonly result: z.ZodType<Result>
  /** Root of the XML answer; default `<name>Result`. */
  readonly root?: string
  /** Name of the member of the result that is a list and is answered in pages (`max-items`, `continuation-token`); the frame adds IsTruncated and NextContinuationToken. */
  readonly pages?: keyof Result & string
  /** A presigned link may ask for it. Default no: a leaked link must not show billing or spend money. GET only. */
  readonly presignable?: boolean
  /**
   * It decides itself who may do what. Otherwise of an identity with rights of its own the frame asks for the action `<plugin>:<name>`, but to read what belongs to a bucket
   * or object; and for what belongs to one, for the right to read the whole bucket or that key.
   */
  readonly ownRules?: boolean
  /** See `Operation.deadlineMs`. Default for what becomes a job: long enough for the longest wait for it. */
  readonly deadlineMs?: number
  /** For the virtual bucket: names that stand for `{...}` in `path`, so that the resources can be listed; a resource without is listed if its path has no `{...}`. */
  members?(context: Context): AsyncIterable<Readonly<Record<string, string>>>
}

export interface CallRequest<R extends Resource, Body, Query> {
  readonly request: S3Request<R>
  readonly body: Body
  readonly query: Query
  /** Which part of the list is wanted, for a call that makes its pages itself. */
  readonly page: PageRequest
}

export interface PageRequest {
  /** Items at most, 1 to 1000. */
  readonly limit: number
  /** `next` of the page before, or what a client has made up; undefined for the first. */
  readonly from: string | undefined
}

const MARK: unique symbol = Symbol.for('dealgate.PageOf')

/** A page that the call has made itself. `instanceof` holds for those of another copy of this package too. */
export class PageOf<T> {
  /** @param next where the next page begins, in the call's own words; undefined where there is none */
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

/** A result whose lists may also come as they are made, or as a page of them. */
export type Answer<Result> = {
  readonly [Name in keyof Result]: Result[Name] extends readonly (infer Item)[]
    ? Result[Name] | AsyncIterable<Item> | PageOf<Item>
    : Result[Name]
}

/** Answers at once. */
export interface AnsweredCall<
  R extends Resource,
  Body extends Document,
  Query extends Document,
  Result extends Document,
> extends CallDeclaration<R, Body, Query, Result> {
  /** With `pages`: the whole list or an async iterable of it, of which the frame takes a page; or a PageOf, made by what `page` asks for. */
  answer(call: CallRequest<R, Body, Query>, context: Context): Promise<Answer<Result>>
  /** HTTP status of an answer; default 200. */
  status?(result: Answer<Result>): 200 | 202
  /** The job that goes on with it, if there is one: told in x-dealgate-job-id, its address in Location. */
  jobId?(result: Answer<Result>): string | undefined
}

/** What the job of a call is to work with. */
export interface JobOrder {
  /** What it is about: `/bucket/key`. */
  readonly resource: string
  readonly input: unknown
}

/**
 * Becomes a job: its result is the answer if it comes within `Prefer: wait=N` (default 20 s, 0 to 300), otherwise 202 with the job. Takes x-amz-client-token and
 * Idempotency-Key. Its policy action is `<plugin>:<name>`; an identity with rights of its own needs that action in its list.
 */
export interface JobCall<R extends Resource, Body extends Document, Query extends Document, Result extends Document>
  extends CallDeclaration<R, Body, Query, Result> {
  /** Name of the JobKind, whose result is a `Result`. */
  readonly job: string
  /** It can cost money: the same again within 60 s without a token is DuplicateRequest unless the body has `Force`. */
  readonly spends: boolean
  /** Checks everything that can be checked, changing nothing; throws S3Error. Not asked for a request that is repeated with its token. */
  order(call: CallRequest<R, Body, Query>, context: Context): Promise<JobOrder>
}

/** A call as data, whatever its types: what an operation carries for those who describe it. */
export interface CallFacts extends CallDeclaration<Resource, Document, Document, Document> {
  /** Of calls that become jobs. */
  readonly job?: string
  readonly spends?: boolean
}
