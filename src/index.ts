import type { Services, ServicesOptions } from './services/index.js'

/** For schemas of options and documents, so that plugins need no dependency on zod. */
export { z } from 'zod'
export { openCredentialsFile } from './access/credentials-file.js'
export type { Caller, Credentials, GatewayAccount, Identity, Right } from './auth/caller.js'
export type { CredentialsFile, CredentialsFileOptions } from './auth/identities/credentials-file.js'
export { codes, type S3Code } from './common/errors/codes.js'
export { OutcomeUnknown } from './common/errors/outcome-unknown.js'
export { type ErrorCode, type OwnErrorOptions, S3Error, type S3ErrorOptions } from './common/errors/s3-error.js'
export { createLogger, type Logger, redact } from './common/log.js'
export type { AccountKeys } from './gateway/account/account-keys.js'
export type { Gateway } from './gateway/gateway.js'
export type { GatewayAnswer, GatewayCall } from './gateway/gateway-call.js'
export type { Store, StoredObject, StoreEntry } from './objects/store.js'
export {
  type Answer,
  type AnsweredCall,
  type CallRequest,
  type JobCall,
  type JobOrder,
  PageOf,
  type PageRequest,
} from './plugins/calls/declare/call.js'
export { withRaw } from './plugins/calls/declare/raw.js'
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
export { type Job, type JobKind, type JobProgress, type Jobs, Retry, type RunningJob } from './plugins/jobs/job.js'
export { serviceTokenOf } from './plugins/jobs/records/tokens.js'
export { formatAmount, parseAmount } from './plugins/kit/amounts.js'
export { Attempts } from './plugins/kit/attempts.js'
export { countByState, spendGauges } from './plugins/kit/gauges.js'
export {
  type ProviderDocument,
  providerDocument,
  providerDocumentOf,
  type WireProvider,
} from './plugins/kit/provider-document.js'
export type { Lease, PeriodicRun, PeriodicWork } from './plugins/kit/schedule.js'
export type { Sealer } from './plugins/kit/sealer.js'
export {
  type ExceededCap,
  type Expense,
  FIL_LEDGER,
  type SpendCaps,
  SpendLedger,
  type SpendLedgerOptions,
} from './plugins/kit/spend-ledger.js'
export { type FileForm, isForm, openForm } from './request/form/open-form.js'
export type { S3Request } from './request/s3-request.js'
export { empty, noContent, type Reply, type ReplyHeaders, xml } from './response/reply.js'
export type { Webhook } from './s3/notifications/delivery/webhooks.js'
export type { ArchiveAccess } from './s3/storage-class/archive.js'
export type { Presence } from './s3/storage-class/presence.js'
export type { Context } from './server/context.js'
export { createProxy } from './server/create-proxy.js'
export { defaultLimits, type Limits } from './server/limits.js'
export type { Proxy, ProxyOptions } from './server/proxy-options.js'
export type { Services, ServicesOptions } from './services/index.js'
export type * from './state/records/setting-types.js'
export type { Archive, Locks, Records } from './state/state.js'

/** Starts the embedded services in this process. Loads their code only now, because plugins import this module too. */
export async function startServices(options: ServicesOptions): Promise<Services> {
  return (await import('./services/index.js')).startServices(options)
}
