import type { Logging } from '../../common/log.js'
import type { Encrypted } from '../api/encryption.js'
import type { UploadResult } from '../api/gateway.js'
import type { ObjectEvent } from '../api/hooks.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectChecksum } from '../api/object-checksum.js'
import type { ObjectRecord } from '../api/object-records.js'
import type { BodyFacts } from '../api/request.js'
import type { PutRequest, PutResult } from '../api/store.js'
import { areRevisionsUnique, MARKER_REVISION } from '../gateway/object-facts.js'
import { confirmLater } from './confirm-record.js'
import { checksumOf } from './held-upload.js'
import type { ObjectReader } from './object-reader.js'
import type { StoreDeps } from './store-deps.js'
import type { WritePlan } from './write-plan.js'

/** A write whose result is to be recorded, and what that needs. */
export interface Recording {
  readonly deps: StoreDeps
  readonly reader: Pick<ObjectReader, 'findToWrite'>
  readonly request: PutRequest
  readonly logger: Logging
  readonly plan: WritePlan
}

/** What a write has made. */
export interface Made {
  readonly result: UploadResult
  /** Digests and size of the content. */
  readonly facts: BodyFacts
  /** Stored bytes. */
  readonly length: number
  /** If it is not the MD5 of the content. */
  readonly etag: string | undefined
  readonly encrypted: Encrypted | undefined
}

/** Facts of the object that its answer, its record and the hooks have in common. */
interface Facts {
  readonly revision: string
  readonly etag: string
  readonly checksum: ObjectChecksum | undefined
}

/** The last steps of a write, under the lock of its key: record, announce and answer. */
export async function recordAndAnnounce(write: Recording, made: Made, lock: HeldLock): Promise<PutResult> {
  const { request, plan } = write
  const facts: Facts = {
    revision: plan.marker ? MARKER_REVISION : made.result.revision,
    etag: etagOf(made),
    checksum: checksumOf(request, made.facts),
  }
  const kept = request.writeId === undefined ? undefined : await earlierRecord(write, made, facts)
  if (!kept && !gatewayKeepsAll(request, made, facts)) await record(write, made, facts, lock)
  await announce(write, made, facts)
  return answerOf(made, facts, kept)
}

/** The gateway knows the MD5 of what it has; that of an encrypted object is not the one of its content: promise 5. */
function etagOf({ result, facts, etag: known, encrypted }: Made): string {
  const md5 = facts.md5?.toString('hex')
  const etag = known ?? (encrypted ? md5 : (result.etag ?? md5))
  if (etag === undefined) throw new Error('neither the gateway nor the body has an MD5')
  return etag
}

/** The record that an earlier attempt of this write has made: the object may have changed since, and keeps it. */
async function earlierRecord(
  { deps, request }: Recording,
  { result }: Made,
  { revision }: Facts,
): Promise<ObjectRecord | undefined> {
  const { bucket, key, uploadId } = request
  if (result.versionId === undefined && !areRevisionsUnique(await deps.gateway.features())) return undefined
  const former = await deps.state.objects.ofRevision(bucket, key, revision)
  return former?.uploadId === uploadId ? former : undefined
}

/** True where the gateway keeps all that this server has to know of the object: no record is needed. */
function gatewayKeepsAll(request: PutRequest, { result }: Made, { etag, checksum }: Facts): boolean {
  return (
    result.etag === etag &&
    isKept(result, checksum) &&
    !request.partSizes &&
    !request.tags &&
    !request.acl &&
    !request.archive &&
    !request.attributes.label &&
    !request.attributes.headers['x-amz-website-redirect-location'] &&
    !request.authorized &&
    !request.uploadId
  )
}

/** The answer of the gateway says what it keeps: another gateway may have taken its place since it was described. */
function isKept({ checksum: kept }: UploadResult, checksum: ObjectChecksum | undefined): boolean {
  if (!checksum) return true
  return checksum.type === kept?.type && checksum.algorithm === kept.algorithm && checksum.value === kept.value
}

/** Writes the record of the object, in the order of the writes of its key: promise 17. */
async function record(write: Recording, made: Made, facts: Facts, lock: HeldLock): Promise<void> {
  const { deps, request } = write
  const { bucket, key, partChecksums } = request
  const { versionId } = made.result
  const { objects } = deps.state
  const { revision } = facts
  // Another proxy may have written meanwhile, and this record must not replace its record.
  if (versionId === undefined) lock.ensure()
  if (partChecksums) await deps.partChecksums.set({ bucket, key, revision, versionId }, partChecksums, lock)
  const all = recordOf(request, made, facts)
  await (versionId === undefined ? objects.set(all, lock) : objects.setNewest(all, lock))
  confirm(write, made, revision)
}

function recordOf(request: PutRequest, { result, length, encrypted }: Made, facts: Facts): ObjectRecord {
  const { contentType = 'binary/octet-stream', headers, metadata, label } = request.attributes
  return {
    bucket: request.bucket,
    key: request.key,
    revision: facts.revision,
    size: length,
    encrypted,
    etag: facts.etag,
    contentType,
    headers,
    metadata,
    checksum: facts.checksum,
    partSizes: request.partSizes,
    tags: request.tags,
    acl: request.acl,
    archive: request.archive,
    label,
    uploadId: request.uploadId,
    authorized: request.authorized,
    ...(result.versionId !== undefined && { versionId: result.versionId }),
    ...(result.mark !== undefined && { mark: result.mark }),
  }
}

/** Gives the record its revision once the gateway shows the object, if it does not yet. */
function confirm({ deps, request, logger }: Recording, { result }: Made, revision: string): void {
  if (!result.confirmed) return
  const { bucket, key } = request
  logger.log.warn(
    { err: result.problem, bucket },
    'could not confirm an upload yet: the object gateway does not show the object',
  )
  void confirmLater(deps, logger, bucket, key, revision, result.confirmed)
}

/** Calls the hooks, which put what they do on record before the client has its answer. */
function announce({ deps, request }: Recording, { result, facts }: Made, { etag }: Facts): Promise<void> {
  const { bucket, key, authorized } = request
  const { name, origin } = request.event
  const { size } = facts
  const { versionId } = result
  // Without spreads, which cost more than all other steps here.
  const event: ObjectEvent =
    versionId === undefined
      ? { name, origin, bucket, key, size, etag, time: Date.now() }
      : { name, origin, bucket, key, size, etag, time: Date.now(), versionId }
  return deps.hooks.objectStored(authorized && !request.sealed ? { ...event, authorized } : event)
}

/** A repeated write is answered with the object that it has made. */
function answerOf({ result, facts, encrypted }: Made, { etag, checksum }: Facts, kept?: ObjectRecord): PutResult {
  const { lastModified, versionId } = result
  const { size } = facts
  const plain = { etag, lastModified, size, checksum }
  const answer = encrypted ? { ...plain, encrypted } : plain
  if (versionId === undefined && !kept?.archive) return answer
  return { ...answer, ...(versionId !== undefined && { versionId }), ...(kept?.archive && { archive: kept.archive }) }
}
