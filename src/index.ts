/** Schemas of options and documents: a plugin that takes them from here needs no zod of its own. */
export { z } from 'zod'
export type { Caller, Credentials, GatewayAccount, Identity, Right } from './auth/caller.js'
export { type CredentialsFile, type CredentialsFileOptions, openCredentialsFile } from './auth/credentials-file.js'
export type { Context } from './context.js'
export { createProxy } from './create-proxy.js'
export { codes, type S3Code } from './errors/codes.js'
export { OutcomeUnknown } from './errors/outcome-unknown.js'
export { type ErrorCode, type OwnErrorOptions, S3Error, type S3ErrorOptions } from './errors/s3-error.js'
export {
  type Answer,
  type AnsweredCall,
  type CallRequest,
  type JobCall,
  type JobOrder,
  PageOf,
  type PageRequest,
} from './extension/call.js'
export { defineCall } from './extension/define-call.js'
export { withRaw } from './extension/raw.js'
export { type Job, type JobKind, type JobProgress, type Jobs, Retry, type RunningJob } from './jobs/job.js'
export { defaultLimits, type Limits } from './limits.js'
export { createLogger, type Logger } from './log.js'
export type { Webhook } from './notifications/webhooks.js'
export type { Proxy, ProxyOptions } from './proxy-options.js'
export { defineOperation, type Operation, type Selector } from './registry/operation.js'
export {
  type AnyOperation,
  definePlugin,
  type Plugin,
  type PluginDefinition,
  type PluginFactory,
  type PluginHost,
} from './registry/plugin.js'
export { PluginError } from './registry/plugin-error.js'
export type { StorageClass, TransitionedObject } from './registry/storage-class.js'
export type { S3Request } from './request/s3-request.js'
export { empty, noContent, type Reply, type ReplyHeaders, xml } from './response/reply.js'
export { type Services, type ServicesOptions, startServices } from './services/index.js'
