import { S3Error } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import type { UploadResult, WriteOrder } from '../api/gateway.js'
import type { HeldLock } from '../api/locks.js'
import type { Precondition, PutRequest, PutResult, Source, StoredObject } from '../api/store.js'
import { isHeld } from '../state/locks/locks.js'
import { holdsNoBytes } from './folder-objects.js'
import { HeldUpload } from './held-upload.js'
import type { ObjectReader } from './object-reader.js'
import { type Made, type Recording, recordAndAnnounce } from './record-write.js'
import { lockUntilOutcome, serializedWrite } from './serialized-write.js'
import { spooled, tooLarge } from './sources.js'
import type { StoreDeps } from './store-deps.js'
import { plannedLength, plannedSource, planWrite, wipeKey } from './write-plan.js'

/** One write whose body arrives. Only `upload` changes. */
interface Write extends Recording {
  /** The object in place when the write was admitted, if the write asked for it. */
  readonly before: StoredObject | undefined
  readonly upload: HeldUpload
}

/**
 * Stores a new object: see Store.put. The steps in their order are admit, plan, stream, lock, decide, commit, record
 * and announce; the promises that they name are those of docs/design.md.
 */
export async function writeObject(
  deps: StoreDeps,
  reader: ObjectReader,
  request: PutRequest,
  logger: Logging,
): Promise<PutResult> {
  const before = await admit(deps, reader, request)
  const plan = await planWrite(deps, request)
  const store = (source: Source, length: number) =>
    stream({ deps, reader, request, logger, plan, before }, source, length)
  const { maxBytes, event } = request
  try {
    const size = request.source.length ?? 0
    if (size > maxBytes) throw tooLarge(size, maxBytes)
    const source = plannedSource(plan, request.source)
    if (source.length !== undefined) return await store(source, source.length)
    const bounds = { maxBytes: plannedLength(plan, maxBytes), event, wantChecksum: plan.digests.checksum }
    return await spooled(deps, source, bounds, store)
  } finally {
    wipeKey(plan)
  }
}

/**
 * Refuses what can be refused before a byte of the body is read: promise 14. Resolves with the object in place, if the
 * write has a condition or an attempt on record. The condition counts under the lock alone; this first look saves a
 * client the transfer.
 */
async function admit(
  { gateway, requireOwner }: StoreDeps,
  reader: ObjectReader,
  request: PutRequest,
): Promise<StoredObject | undefined> {
  const { bucket, key, precondition, attempt } = request
  const why = await gateway.refusesKey(key)
  if (why !== undefined) throw new S3Error('InvalidArgument', { message: why, fields: { ArgumentName: 'key' } })
  // The owner's lifecycle rules select objects by tags: they expire objects or make paid deals.
  if (request.tags?.length) await requireOwner(bucket, { action: 's3:PutObjectTagging', key })
  if (!precondition && !attempt) return undefined
  const before = await reader.findToWrite(bucket, key)
  if (!isSameWrite(before, request)) precondition?.(before)
  return before
}

/**
 * Sends all but the last bytes to the gateway, and goes on once all are verified: promise 1. A failure here or later
 * ends the request to the gateway before its length, so that the old object stays: promise 2.
 */
async function stream(admitted: Omit<Write, 'upload'>, source: Source, length: number): Promise<PutResult> {
  const { deps, reader, request, logger, plan, before } = admitted
  if (plan.marker && length > 0) throw holdsNoBytes()
  const upload = new HeldUpload(deps.gateway, request, plan, source.declaredMd5, length)
  try {
    await upload.receive(source, plan.digests, deps.limits.smallBodyBytes)
    return await lock({ deps, reader, request, logger, plan, before, upload })
  } catch (error) {
    upload.abort()
    throw error
  }
}

/**
 * Takes the lock of the key and keeps it until the outcome of the write is known: promise 13. The lock makes
 * conditional writes atomic among the clients of this proxy. A slow client never holds it: its body has arrived.
 */
function lock(write: Write): Promise<PutResult> {
  const { deps, request, logger } = write
  const { state, limits } = deps
  return lockUntilOutcome(
    (run) => state.locks.withKey(request.bucket, request.key, run, { waitMs: limits.keyWaitMs, logger }),
    (held) => storeUnderLock(write, held),
    (result, held) => landLate(write, result, held),
    logger,
  )
}

async function storeUnderLock(write: Write, held: HeldLock): Promise<PutResult> {
  const made = await decide(write, held)
  return recordAndAnnounce(write, made, held)
}

/** Completes a write that took effect after its client got an unknown outcome. */
async function landLate(write: Write, result: UploadResult, held: HeldLock): Promise<void> {
  if (result.versionId === undefined) held.ensure()
  await recordAndAnnounce(write, committed(write, result), held)
  await write.request.attempt?.landed(result)
}

/**
 * Checks the condition against the object that the gateway then requires to be still there, and commits. A repetition
 * of a write that is already stored makes nothing: promise 7. Repeats with a higher fence what the gateway refused.
 */
function decide(write: Write, held: HeldLock): Promise<Made> {
  const { reader, request, logger } = write
  return serializedWrite(
    held,
    conditionOf(request),
    () => reader.findToWrite(request.bucket, request.key),
    async (order, current) => {
      if (isSameWrite(current, request)) return repeated(write, current)
      return committed(write, await commit(write, order, held))
    },
    logger,
  )
}

/** The condition of a write: an object that an earlier attempt of the same write has stored meets it. */
function conditionOf(request: PutRequest): Precondition | undefined {
  const { precondition } = request
  if (!precondition) return undefined
  return (current) => {
    if (!isSameWrite(current, request)) precondition(current)
  }
}

/** Puts the attempt on record, then sends the last bytes: promises 7 and 11 for a write that may cost money. */
async function commit(write: Write, order: WriteOrder, held: HeldLock): Promise<UploadResult> {
  const { deps, request, plan, before, upload } = write
  const { bucket, attempt } = request
  if (!plan.encrypted && upload.length > 0) await deps.encryption.requirePlainAllowed(bucket)
  // The record of the attempt is not made earlier: a write whose last bytes were not sent has no effect. It names the
  // object that was in place before the upload, during which a gateway on one folder answers no lookup of the key.
  if (attempt) await attempt.begin(before?.revision ?? null)
  try {
    return await upload.commit(order)
  } catch (error) {
    const isVoid = upload.unsent || (error instanceof S3Error && error.status < 500)
    // Without the lock, the attempt on record may be that of another server by now.
    if (isVoid && isHeld(held)) await attempt?.failed()
    throw error
  }
}

/** What the gateway has after `commit`. */
function committed({ plan, upload }: Write, result: UploadResult): Made {
  const { facts, length } = upload
  const { etag, encrypted } = plan
  return { result, facts, length, etag, encrypted }
}

/** What an earlier attempt has stored. Its encryption is another one, perhaps for other recipients. */
function repeated({ request, upload }: Write, found: StoredObject): Made {
  upload.abort()
  const { encrypted, size, storedSize = size, revision, lastModified, versionId } = found
  const result = { revision, lastModified, ...(versionId !== undefined && { versionId }) }
  return { result, facts: upload.facts, length: storedSize, etag: request.etag ?? found.etag, encrypted }
}

/**
 * True when an earlier attempt of this very request stored the present object, according to the gateway or the record.
 */
function isSameWrite(
  current: StoredObject | undefined,
  { writeId, uploadId }: PutRequest,
): current is StoredObject & { readonly writeId?: string } {
  if (writeId === undefined || !current) return false
  return current.writeId === writeId || (current.uploadId !== undefined && current.uploadId === uploadId)
}
