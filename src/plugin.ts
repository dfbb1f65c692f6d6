/**
 * The package's entry `dealgate/plugin`: what an author of a plugin needs, by subject. docs/plugin-parts.md and
 * docs/plugin-toolkit.md describe each; what the server does for a plugin is a member of its host, or of the context of
 * a request or job. Plugins that spend money find more in `dealgate/paid`.
 *
 * @example
 * import { defineCall, definePlugin, z } from 'dealgate/plugin'
 *
 * const greet = defineCall({
 *   name: 'GetGreeting', source: 'README.md', summary: 'Greets the caller.', access: 'signed',
 *   on: { method: 'GET', resource: 'service', path: '/-/hello/v1/greeting' },
 *   result: z.object({ Greeting: z.string() }),
 *   answer: async (_, { caller }) => ({ Greeting: `Hello, ${caller?.identity.accessKeyId}` }),
 * })
 * export default definePlugin({ name: 'hello', summary: 'Greets.', create: () => ({ operations: [greet] }) })
 */

// THE PLUGIN: what it declares, and what the server gives it.

/** Schemas of options, queries, bodies and results, so that plugins need no dependency on zod. */
export { z } from 'zod'
export type { Logger } from '../common/log.js'
/** PluginHost and what it has, PluginGauge, PeriodicWork, PluginServices. */
export type * from './api/plugin.js'
/** BucketSettings, and SettingTypes, to which a plugin adds its kind by `declare module 'dealgate/plugin'`. */
export type * from './api/settings.js'
/** `definePlugin` returns the default export of the module of a plugin. */
export { definePlugin, type PluginFactory } from './plugins/define-plugin.js'

// REQUESTS: those that the plugin answers, and what it answers.

export type { Context } from './api/context.js'
export type { Caller, Identity } from './api/identity.js'
export type { AnyOperation, Operation } from './api/operation.js'
export type { Reply, ReplyHeaders, S3Request } from './api/request.js'
/** A body that is a form of a browser: `isForm` tells one, `openForm` reads it up to its file. */
export { type FileForm, isForm, openForm } from './http/form/read-form.js'
/** Results of calls: a page of a list, words for the log of changes, and an answer as a service gave it. */
export { PageOf, type PageRequest, withChanges, withRaw } from './plugins/calls/call.js'
/** A request with documents in JSON and XML, pages, client tokens and jobs, by schemas of query, body and result. */
export { defineCall } from './plugins/calls/define-call.js'
/** A request in a form of its own, such as that of S3. */
export { defineOperation } from './plugins/define-plugin.js'
/**
 * Replies of operations: `reply.xml(text)`, `reply.empty()`, `reply.noContent()`.
 * @example reply.xml(xml.document('Shelf', xml.element('Name', name)))
 */
export * as reply from './plugins/parts/reply.js'
/**
 * XML documents of S3: `document`, `element`, `escape` write them, `read`, `parse` and `parseAny` read them in bounds,
 * and `text`, `requireText`, `requireChildren`, `malformed` and `notOffered` take them apart.
 * @example const name = xml.requireText(await xml.read(request, context, 'Shelf'), 'Shelf', 'Name')
 */
export * as xml from './plugins/parts/xml.js'
/** Whether a policy, an ACL or the gateway opens a bucket to everybody. */
export { isOpenToEverybody } from './s3/access/bucket-policy-operations.js'
/** The operations of S3 that read, set and remove a setting of a bucket. For the plugins that are part of S3. */
export { bucketSetting } from './s3/bucket/bucket-setting.js'
/** Continuation tokens of listings in the form of S3: a key, so that clients do not read it. */
export { decodeToken, encodeToken } from './s3/bucket/list-objects.js'

// ERRORS: what a handler or a job throws.

/**
 * S3Error is what a client gets; OutcomeUnknown says that something irrevocable was sent and its answer was lost.
 * @example throw new S3Error('NoSuchShelf', { status: 404, message: 'No shelf has this name.' })
 */
export { type ErrorCode, OutcomeUnknown, S3Error } from '../common/errors/s3-error.js'
/** Any thrown value as the S3Error that the server would answer with; its details are for the log alone. */
export { toS3Error } from './http/error-reply.js'

// JOBS: work that outlives requests and restarts. `context.callerJobs` orders them, `host.own.jobs` are all.

/** How long to wait before the next try: doubling pauses in bounds, with chance where several wait. */
export { type Backoff, jitteredPause, pauseAfter } from '../common/backoff.js'
export type { JobKind, Jobs, RunningJob } from './api/context.js'
export type { Job, JobFailure, JobProgress } from './api/jobs.js'
/** What a job throws to run again later. */
export { Retry } from './plugins/jobs/live-job.js'
/** Whether a job in this state changes no more. */
export { hasEnded } from './plugins/jobs/record.js'
/** The idempotency token by which another service recognises the request of a job. */
export { serviceTokenOf } from './plugins/jobs/tokens.js'
/** Spreads work evenly: `next` waits for a turn, `settled` and `count` where the amount is known afterwards. */
export { Pace } from './plugins/parts/pace.js'

// OBJECTS: as `context.store` has them.

export type { ServerKey } from './api/encryption.js'
export type { Archive } from './api/object-records.js'
export type { Rewrapped, Source, StoredObject, StoreEntry } from './api/store.js'
export type { VersionEntry } from './api/versions.js'
/**
 * A body to store, of bytes that the plugin makes.
 * @example await context.store.put({ bucket, key, source: sourceOf(Buffer.from(text)), ... })
 */
export { sourceOf } from './objects/sources.js'
/** The checksums of S3: `algorithms`, the header of each, and `open`, which begins one. */
export * as checksums from './plugins/parts/checksums.js'

// STORAGE CLASSES, HOOKS AND INVENTORIES: what a plugin adds to the requests of S3.

export type { AdmittedWrite, ClassWrite, RestoreOrder, RestoreOutcome, TransitionedObject } from './api/archive.js'
export type { Expansion, ExpansionSubject, StorageClass } from './api/context.js'
export type { EndedRequest, ObjectEvent, PluginHooks } from './api/hooks.js'
export type { InventoryField, InventoryFields, InventoryValues } from './api/inventory.js'
/** The rules of a bucket, as its settings of the kind `lifecycle` have them. */
export type { LifecycleConfiguration } from './s3/lifecycle/configuration.js'

// REQUESTS IN THE NAME OF A CALLER: `host.perform` and `host.decide`, for work that a caller has ordered.

export type { Decide, OwnRequest, Perform, RequestOwner } from './api/child-request.js'
export type { OwnTerms, Transfer } from './api/request.js'
/** A text as `OwnRequest.headers` has it, in the form of the wire. Throws InvalidArgument for what no header holds. */
export { headerOf } from './http/headers.js'

// TIME: work that comes again, and its bounds.

/** Runs a task periodically in each process, never twice at once; `host.schedule` is for work that one server does. */
export { PeriodicTask, withinDeadline } from '../common/time.js'

// RECORDS: durable data of a plugin, in `host.state`.

export type { Lease, Locks } from './api/locks.js'
export type { Records, Spool, State } from './api/state.js'
/** Records in which an earlier release named a member otherwise. */
export { renamedMember } from './state/records/renamed-member.js'

// OTHER SERVICES: what plugins call, with the outcome of each call known or known to be unknown.

/** The network of an address, by which clients without a key pair are counted. */
export { networkOf } from '../common/cidr.js'
/** Connections to another host, opened with the first request and kept: the `dispatcher` of undici's requests. */
export { LazyDispatcher } from '../common/lazy-dispatcher.js'
/** A URL or the target of a request without its secrets, for logs. */
export { redact } from '../common/log.js'
/** The client of an HTTP service with answers in JSON, and what its errors mean for work that may be sent again. */
export {
  AnswerLost,
  readAnswer,
  repeatable,
  type ServiceAnswer,
  type ServiceCall,
  ServiceClient,
  type ServiceClientOptions,
  unrepeatable,
} from '../common/service-client.js'
/** The documents of the task platform and the payment API, by which answers are read and documented. */
export { type DocumentFields, documents, type Kind, type KindOf, taskFields } from '../common/service-documents.js'
export type { BucketNumbers, BucketStanding, Gateway } from './api/gateway.js'
export type { GatewayAnswer, GatewayCall } from './api/gateway-call.js'
/** Amounts of fil as texts, and in attofil. */
export { formatAmount, parseAmount } from './plugins/parts/fil.js'

// DESCRIPTIONS: the operations of the server, `host.operations`, as documents for other programs.

/** Order of texts by their bytes in UTF-8, as S3 lists keys. */
export { compareUtf8 } from '../common/byte-order.js'
/** The query of a request, with each parameter read once. */
export { Query } from '../common/query.js'
export type { ListQuery } from './api/gateway.js'
export type { GatewayFeatures } from './api/gateway-features.js'
export type { CallFacts, Document, OperationRow } from './api/operation.js'
export type { StorePage } from './api/store.js'
/** Address of the calls that no bucket has. */
export { serviceAddress } from './plugins/calls/call.js'
/** Namespace of the XML documents of a call. */
export { namespaceOf } from './plugins/calls/format.js'
/** Schemas of calls as JSON Schema: `shapeOf` makes one, `typesOf` reads the types of a node. */
export { type SchemaNode, shapeOf, typesOf } from './plugins/calls/shape.js'
/** The document of a job, which calls that order one answer with. */
export { jobDocument } from './plugins/jobs/document.js'
/** Path and words of an operation's target. */
export { pathOf, targetText } from './plugins/table.js'
/** The operations by which clients look at a bucket, to run them over something else that is shown as one. */
export { bucketReads } from './s3/bucket/bucket-reads.js'

// MANAGEMENT: key pairs and accounts of a server, and who may change them.

/** Texts that are no JSON of S3: a surrogate alone, and a name that an object has twice. */
export { hasLoneSurrogate, repeatedName } from '../common/json.js'
/** What is wrong with the policies of an identity. */
export { identityPolicyProblem } from './access/documents.js'
/** Identities as the file of key pairs has them, and what is wrong with one. */
export { identitySchema, type PolicyProblem, placeOf, policyProblems } from './auth/identity-schema.js'
/** Whether the name of a principal is that of a temporary session. */
export { isNameOfSession } from './s3/sts/principals.js'
/** Admits the callers that may manage a server, once for each signature. */
export { type AdmitOperator, admission, requireOwnAccount } from './server/manage/operators.js'
