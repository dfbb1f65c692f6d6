import type { Services, ServicesOptions } from './services/index.js'

/** For schemas of options and documents, so that plugins need no dependency on zod. */
export { z } from 'zod'
export { openCredentialsFile } from './access/credentials-file.js'
export type * from './api/settings.js'
export type { Caller, Credentials, GatewayAccount, Identity, Right } from './auth/caller.js'
export type { CredentialsFile, CredentialsFileOptions } from './auth/identities/credentials-file.js'
export { codes, type S3Code } from './common/errors/codes.js'
export {
  type ErrorCode,
  OutcomeUnknown,
  type OwnErrorOptions,
  S3Error,
  type S3ErrorOptions,
} from './common/errors/s3-error.js'
export { createLogger, type Logger, redact } from './common/log.js'
export type { AccountKeys } from './gateway/account/session.js'
export type { Gateway } from './gateway/gateway.js'
export type { GatewayAnswer, GatewayCall } from './gateway/gateway-call.js'
export { type FileForm, isForm, openForm } from './http/form/read-form.js'
export { empty, noContent, type Reply, type ReplyHeaders, xml } from './http/reply.js'
export type { S3Request } from './http/s3-request.js'
export type { Store, StoredObject, StoreEntry } from './objects/store.js'
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
export type { Expansion, ExpansionSubject } from './plugins/forms/expansion.js'
export type { ObjectEvent, ObjectEventName, Origin, PluginHooks } from './plugins/forms/hooks.js'
export { defineOperation, type Operation, type Selector } from './plugins/forms/operation.js'
export {
  type AnyOperation,
  definePlugin,
  type Plugin,
  type PluginDefinition,
  type PluginFactory,
  type PluginHost,
  type PluginState,
} from './plugins/forms/plugin.js'
export { PluginError } from './plugins/forms/plugin-error.js'
export type { GaugeSample, PluginGauge } from './plugins/forms/plugin-gauge.js'
export type * from './plugins/forms/services.js'
export type {
  AdmittedWrite,
  ClassWrite,
  RestoreOrder,
  RestoreOutcome,
  StorageClass,
  TransitionedObject,
} from './plugins/forms/storage-class.js'
export { countByState, spendGauges } from './plugins/host/gauges.js'
export {
  type ProviderDocument,
  providerDocument,
  providerDocumentOf,
  type WireProvider,
} from './plugins/host/provider-document.js'
export type { Lease, PeriodicRun, PeriodicWork } from './plugins/host/schedule.js'
export { Attempts } from './plugins/host/schedule.js'
export type { Sealer } from './plugins/host/sealer.js'
export {
  type ExceededCap,
  type Expense,
  FIL_LEDGER,
  formatAmount,
  parseAmount,
  type SpendCaps,
  SpendLedger,
  type SpendLedgerOptions,
} from './plugins/host/spend-ledger.js'
export { type Job, type JobKind, type JobProgress, type Jobs, Retry, type RunningJob } from './plugins/jobs/job.js'
export { serviceTokenOf } from './plugins/jobs/tokens.js'
export type { Webhook } from './s3/notifications/webhooks.js'
export type { ArchiveAccess } from './s3/object/restore.js'
export type { Presence } from './s3/object/storage-class.js'
export type { Context } from './server/context.js'
export { createProxy } from './server/create-proxy.js'
export { defaultLimits, type Limits } from './server/limits.js'
export type { Proxy, ProxyOptions } from './server/proxy-options.js'
export type { Services, ServicesOptions } from './services/index.js'
export type { Archive, Locks, Records } from './state/state.js'

/** Starts the embedded services in this process. Loads their code only now, because plugins import this module too. */
export async function startServices(options: ServicesOptions): Promise<Services> {
  return (await import('./services/index.js')).startServices(options)
}
