/**
 * The package's entry `dealgate/plugin`: what an author of a plugin needs. docs/plugins.md describes each part.
 * Plugins that spend money find more in `dealgate/paid`.
 */

/** For schemas of options and documents, so that plugins need no dependency on zod. */
export { z } from 'zod'
export { networkOf } from '../common/cidr.js'
export { codes, type S3Code } from '../common/errors/codes.js'
export {
  type ErrorCode,
  OutcomeUnknown,
  type OwnErrorOptions,
  S3Error,
  type S3ErrorOptions,
} from '../common/errors/s3-error.js'
export { formatAmount, parseAmount } from '../common/fil.js'
export { createLogger, type Logger, redact } from '../common/log.js'
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
export { type DocumentFields, documents, type Kind, type KindOf, taskFields } from '../common/service-documents.js'
export type {
  AdmittedWrite,
  ArchiveAccess,
  ClassWrite,
  Presence,
  RestoreOrder,
  RestoreOutcome,
  TransitionedObject,
} from './api/archive.js'
export type { Context, Expansion, ExpansionSubject, JobKind, Jobs, RunningJob, StorageClass } from './api/context.js'
export type { Gateway, ListQuery } from './api/gateway.js'
export type { GatewayAnswer, GatewayCall } from './api/gateway-call.js'
export type { ObjectEvent, ObjectEventName, Origin, PluginHooks } from './api/hooks.js'
export type { Caller, Identity, Right } from './api/identity.js'
export type { InventoryField, InventoryFields, InventoryValues } from './api/inventory.js'
export type { Job, JobProgress } from './api/jobs.js'
export type { Limits } from './api/limits.js'
export type { Lease, Locks } from './api/locks.js'
export type { AnyOperation, Operation, Selector } from './api/operation.js'
export type * from './api/plugin.js'
export type { Reply, ReplyHeaders, S3Request } from './api/request.js'
export type * from './api/settings.js'
export type { Archive, Records } from './api/state.js'
export type { Store, StoredObject, StoreEntry } from './api/store.js'
export { type FileForm, isForm, openForm } from './http/form/read-form.js'
export { empty, noContent, xml } from './http/reply.js'
export {
  type Answer,
  type AnsweredCall,
  type CallRequest,
  type JobCall,
  type JobOrder,
  PageOf,
  type PageRequest,
  withRaw,
} from './plugins/calls/call.js'
export { defineCall } from './plugins/calls/define-call.js'
export type { PluginDefinition } from './plugins/define-plugin.js'
export { defineOperation, definePlugin, PluginError, type PluginFactory } from './plugins/define-plugin.js'
export { Retry } from './plugins/jobs/live-job.js'
export { serviceTokenOf } from './plugins/jobs/tokens.js'
export { renamedMember } from './state/records/renamed-member.js'
