/**
 * The package's entry `dealgate/plugin`: what an author of a plugin needs. docs/plugins.md describes each part.
 * Plugins that spend money find more in `dealgate/paid`.
 */

/** For schemas of options and documents, so that plugins need no dependency on zod. */
export { z } from 'zod'
export { type Backoff, jitteredPause, pauseAfter } from '../common/backoff.js'
export {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  checksumHeader,
  createChecksum,
  prepareChecksum,
} from '../common/checksums/checksums.js'
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
export { Pace } from '../common/pace.js'
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
export {
  childText,
  document,
  element,
  escapeXml,
  notOffered,
  notStrict,
  parseDocument,
  parseXml,
  requireChildren,
  requiredText,
  type XmlNode,
} from '../common/xml.js'
export { requireBucketOwner } from './access/expected-owner.js'
export { askedOf } from './access/required-actions.js'
export { uriOf } from './access/values/acl-values.js'
export type { Acl, ObjectAcl } from './api/access.js'
export type {
  AdmittedWrite,
  ArchiveAccess,
  ClassWrite,
  Presence,
  RestoreOrder,
  RestoreOutcome,
  TransitionedObject,
} from './api/archive.js'
export type { Decide, OwnRequest, Perform, RequestOwner } from './api/child-request.js'
export type { Context, Expansion, ExpansionSubject, JobKind, Jobs, RunningJob, StorageClass } from './api/context.js'
export type { ServerKey } from './api/encryption.js'
export type { BucketStanding, Gateway, ListQuery } from './api/gateway.js'
export type { GatewayAnswer, GatewayCall } from './api/gateway-call.js'
export type { ObjectEvent, ObjectEventName, Origin, PluginHooks } from './api/hooks.js'
export type { Caller, Identity, Right } from './api/identity.js'
export type { InventoryField, InventoryFields, InventoryValues } from './api/inventory.js'
export type { Job, JobFailure, JobProgress } from './api/jobs.js'
export type { Limits } from './api/limits.js'
export type { Lease, Locks } from './api/locks.js'
export type { Archive } from './api/object-records.js'
export type { AnyOperation, Operation, Selector } from './api/operation.js'
export type * from './api/plugin.js'
export type { OwnTerms, Reply, ReplyHeaders, S3Request, Transfer } from './api/request.js'
export type * from './api/settings.js'
export type { Records, Spool, State } from './api/state.js'
export type { Rewrapped, Source, Store, StoredObject, StoreEntry } from './api/store.js'
export type { ObjectLock, VersionEntry } from './api/versions.js'
export { canonicalId } from './auth/credentials.js'
export { toS3Error } from './http/error-reply.js'
export { type FileForm, isForm, openForm } from './http/form/read-form.js'
export { headerOf } from './http/headers.js'
export { requireDocument } from './http/read-request.js'
export { empty, noContent, xml } from './http/reply.js'
export { isKeyId } from './objects/encryption/key-file.js'
export { digesting } from './objects/sources.js'
export {
  type Answer,
  type AnsweredCall,
  type CallRequest,
  type JobCall,
  type JobOrder,
  PageOf,
  type PageRequest,
  withChanges,
  withRaw,
} from './plugins/calls/call.js'
export { defineCall } from './plugins/calls/define-call.js'
export { hashOf, readClientToken } from './plugins/calls/prepare.js'
export type { PluginDefinition } from './plugins/define-plugin.js'
export { defineOperation, definePlugin, PluginError, type PluginFactory } from './plugins/define-plugin.js'
export { jobOf, seenBy, signatureOf } from './plugins/jobs/job-calls.js'
export { Retry } from './plugins/jobs/live-job.js'
export { narrowed, sessionOf } from './plugins/jobs/narrow.js'
export { hasEnded, noSuchJob } from './plugins/jobs/record.js'
export { serviceTokenOf } from './plugins/jobs/tokens.js'
export { isHotClass } from './plugins/storage-class.js'
export { aclOfWrite } from './s3/access/acl-operations.js'
export { privateAcl } from './s3/access/acl-syntax.js'
export { bucketSetting } from './s3/bucket/bucket-setting.js'
export { decodeToken, encodeToken } from './s3/bucket/list-objects.js'
export { ownerId } from './s3/bucket/owner.js'
export { expirationOf } from './s3/lifecycle/rules.js'
export { presenceOf } from './s3/object/storage-class.js'
export { taggingDocument } from './s3/tags.js'
export { hasVersions } from './s3/versions/version.js'
export { renamedMember } from './state/records/renamed-member.js'
