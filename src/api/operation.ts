import type { z } from 'zod'
import type { NeededRight } from './access.js'
import type { Context, ExpansionSubject } from './context.js'
import type { Method, Reply, Resource, S3Request } from './request.js'

/**
 * Selects the requests that an operation answers. If several operations match, the most specific one wins; see
 * src/plugins/table.ts.
 */
interface Selector<R extends Resource> {
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
  /** Query keys that may be given several times. */
  readonly lists?: readonly string[]
  /** Headers that demand something (src/plugins/table.ts) and that the operation supports; others: NotImplemented. */
  readonly headers?: readonly string[]
  /** Keeps `x-amz-meta-*` with the object. What continues a multipart upload refuses them, all others ignore them. */
  readonly metadata?: true
}

/** See Operation.access. */
export type OperationAccess = 'signed' | 'bearer' | 'anonymous' | 'public' | 'owner'

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
   * The callers who may use it. A server does not start with an operation that does not declare it.
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
  readonly access: OperationAccess
  /**
   * The actions that policies decide about, such as `s3:GetObject`; for an operation of a plugin `<plugin>:<Name>`. A
   * server does not start with an operation that does not declare them. `defineCall` declares `<plugin>:<name>`.
   */
  readonly action: RowAction
  /**
   * The right that the caller needs, checked before the body can be read. Mandatory for a PUT or POST on a bucket or an
   * object that is not made by `defineCall`.
   */
  readonly needs?: NeededRight
  /**
   * Declares that the operation, which is one of the server itself, changes multipart uploads. These belong to the key
   * pair that began them, not to the owner of the bucket.
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

/** Name of an action in policies: `s3:GetObject`, `deal:CreateObjectDeal`. */
export type ActionName = `${string}:${string}`

/**
 * What an operation asks the one decision (access/authorizer). A server does not start with an operation that does not
 * declare it.
 */
export type RowAction =
  /** The actions on the resource of the request, each decided before the body can be read. */
  | ActionName
  | readonly ActionName[]
  /** The body names the keys. The operation decides this action on each of them with `Context.decide`. */
  | { readonly each: ActionName }
  /** The action `<plugin>:<name>` of an extension call. */
  | { readonly call: string }
  /** Nothing to decide: the operation neither returns nor changes data of anyone. */
  | 'none'

/** A document that a call reads or returns: an object with members in PascalCase. */
export type Document = Readonly<Record<string, unknown>>

/**
 * Selects the requests that a call answers: on a bucket or object by `?x-<plugin>[-resource]=`, on the service by a
 * path `/-/<plugin>/v1/...`.
 */
interface CallSelector<R extends Resource> {
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
   * The callers who may use it: see `Operation.access`. Use `owner` for data of a bucket or object that only the plugin
   * stores, because no call to the gateway protects it. `public` requires `ownRules`. `bearer` on a call of the service
   * also accepts an unsigned request with `Authorization: Bearer`, without a caller: the call passes the token on to
   * the service that it is for, which decides.
   */
  readonly access: 'signed' | 'bearer' | 'owner' | 'public'
  /** The actions that policies decide about; default `<plugin>:<name>`. Requires `ownRules`. */
  readonly action?: RowAction
  /** The right in the bucket that the caller needs, checked before the body is read. Requires `ownRules`. */
  readonly needs?: NeededRight
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

/** The declaration of a call without its types: operations carry it for the descriptions. */
export interface CallFacts extends CallDeclaration<Resource, Document, Document, Document> {
  /** See JobCall. */
  readonly job?: string
  readonly spends?: boolean
  /** Present if the body is a content; see JobCall. */
  readonly pass?: unknown
}

/** An operation on any resource. The table passes it only requests of its own kind. */
export type AnyOperation = { [R in Resource]: Operation<R> }[Resource]

/** An operation of a server, and the plugin that has it. */
export interface OperationRow {
  /** Name of the plugin; `s3` and others for operations of the server itself. */
  readonly plugin: string
  readonly operation: AnyOperation
}
