import type { Services, ServicesOptions } from '../services/index.js'

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
export { createLogger, type Logger, redact } from '../common/log.js'
export { documents, taskFields } from '../common/service-documents.js'
export type { Services, ServicesOptions } from '../services/index.js'
export { openCredentialsFile } from './access/documents.js'
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
export type { Caller, Credentials, GatewayAccount, Identity, Right } from './api/identity.js'
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
export type { CredentialsFile, CredentialsFileOptions } from './auth/credentials-file.js'
export type { AccountKeys } from './gateway/account/log-in.js'
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
export {
  type AnswerPart,
  AnswerReader,
  type AnswerReaderOptions,
  answerParts,
  answerShape,
  badResponse,
  type Envelope,
  lenient,
  listed,
  member,
  membersOf,
  quoted,
} from './plugins/upstream/answers.js'
export { countByState, spendGauges } from './plugins/upstream/gauges.js'
export {
  OptionalService,
  PaidService,
  type PaidServiceOptions,
  serviceOptions,
} from './plugins/upstream/paid-service.js'
export {
  type ProviderDocument,
  priceStatistics,
  providerDocument,
  providerShape,
} from './plugins/upstream/providers.js'
export { plainWarning, publicNetwork, publicWarning, warningHeaders } from './plugins/upstream/public-network.js'
export { type Found, SentRequests, type SentRequestsOptions } from './plugins/upstream/sent-requests.js'
export {
  type Actor,
  Attempts,
  accountOrKeyHash,
  actorOf,
  IdentitySecrets,
  type IdentitySecretsOptions,
  JobTokens,
  requireToken,
  secretKeyHash,
  signedIdentity,
  TokenRefused,
  type TokenTimes,
  timesOfToken,
} from './plugins/upstream/sign-in.js'
export {
  type CapToday,
  capOf,
  type ExceededCap,
  type Expense,
  filPerDay,
  formatAmount,
  type ListedExpense,
  openFilLedger,
  parseAmount,
  type SpendCaps,
  SpendLedger,
  type SpendLedgerOptions,
} from './plugins/upstream/spend-ledger.js'
export type { Webhook } from './s3/notifications/webhooks.js'
export { createProxy } from './server/create-proxy.js'
export { defaultLimits } from './server/limits.js'
export type { Proxy, ProxyOptions } from './server/proxy-options.js'
export { renamedMember } from './state/records/renamed-member.js'

/** Starts the embedded services in this process. Loads their code only now, because plugins import this module too. */
export async function startServices(options: ServicesOptions): Promise<Services> {
  return (await import('../services/index.js')).startServices(options)
}
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
