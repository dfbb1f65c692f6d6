import { S3Error } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import type { Encrypted } from '../api/encryption.js'
import type { UploadResult, WriteOrder } from '../api/gateway.js'
import type { ObjectEvent } from '../api/hooks.js'
import type { HeldLock } from '../api/locks.js'
import type { BodyFacts } from '../api/request.js'
import type { ObjectChecksum, ObjectRecord, ObjectRecords } from '../api/state.js'
import type {
  Cause,
  Precondition,
  PutRequest,
  PutResult,
  Rewrapped,
  Source,
  Store,
  StoredObject,
} from '../api/store.js'
import type { RemovalResult, VersionRemoval } from '../api/versions.js'
import { areRevisionsUnique, MARKER_REVISION, opaqueEtag } from '../gateway/object-facts.js'
import { isHeld } from '../state/locks/locks.js'
import { defaultChecksum } from './default-checksum.js'
import { sealedLength, sealedSource } from './encryption/sealed-source.js'
import { holdsNoBytes, keepFolders } from './folder-objects.js'
import { ObjectChanges } from './object-changes.js'
import { textOf } from './object-record.js'
import { markerEvent, removeVersion } from './remove-version.js'
import { rewrapObject } from './rewrap-object.js'
import { lockUntilOutcome, serializedWrite } from './serialized-write.js'
import { spooled, streamHoldingBack, tooLarge } from './sources.js'

/** The objects of one gateway account. A class, because each request has one of its own, for the lines about it. */
export class ObjectStore extends ObjectChanges implements Store {
  /** The same objects, for a request. */
  for(logger: Logging): Store {
    return new ObjectStore(this.deps, logger)
  }

  /**
   * Streams the source to the gateway and commits it once it is verified. Holds the last bytes back until then: the
   * gateway knows the exact length and cannot treat the object as complete before (docs/design.md, promise 1). Checks
   * the precondition, sends the last bytes and writes the record under the key's lock, which makes conditional writes
   * atomic among the clients of this proxy. A slow client never holds the lock.
   */
  async put(request: PutRequest): Promise<PutResult> {
    const { deps, logger } = this
    const { gateway, state, limits } = deps
    const { bucket, key, precondition, attempt } = request
    const why = await gateway.refusesKey(key)
    if (why !== undefined) throw new S3Error('InvalidArgument', { message: why, fields: { ArgumentName: 'key' } })
    // The owner's lifecycle rules select objects by tags: they expire objects or make paid deals.
    if (request.tags?.length) await deps.requireOwner(bucket, { action: 's3:PutObjectTagging', key })
    const before = (precondition || attempt) && (await this.findToWrite(bucket, key))
    if (!isSameWrite(before, request)) precondition?.(before)

    const features = await gateway.features()
    const marker = key.endsWith('/') && !features.anyKey
    const sealed =
      marker || request.sealed
        ? undefined
        : await deps.encryption.seal({ bucket, key }, request.encryption, request.uploadId)
    const encrypted = request.sealed ?? sealed?.encrypted
    // Who has a key of its own keeps secret what the content is: an MD5 would tell whether it is that of a known file.
    const ownEtag = request.etag ?? (encrypted && encrypted.algorithm !== 'AES256' ? opaqueEtag() : undefined)
    const md5 = (encrypted !== undefined || !features.objectHead) && ownEtag === undefined
    // Where a checksum is known, or the bytes are stored again as they are, none is computed.
    const isGiven = request.checksum !== undefined || request.sealed !== undefined
    const wantChecksum = request.wantChecksum ?? (isGiven ? undefined : defaultChecksum(encrypted))
    const options = { md5, checksum: wantChecksum }
    const { contentType, headers, metadata } = request.attributes
    let arrived: BodyFacts | undefined
    let declaredMd5: Buffer | undefined
    const attributes = {
      ...{ contentType, headers, metadata, writeId: request.writeId, encrypted, lock: request.lock },
      // Read when the headers are sent: after a small body.
      get etag() {
        // With it, a gateway that takes ETags need not compute the MD5: 1.4 s of CPU per GiB.
        return ownEtag ?? (declaredMd5 ?? arrived?.md5)?.toString('hex')
      },
      record: () => textOf({ ...request, label: request.attributes.label, checksum: checksumOf(request, arrived) }),
    }

    const store = async (source: Source, length: number): Promise<PutResult> => {
      if (marker && length > 0) throw holdsNoBytes()
      declaredMd5 = source.declaredMd5
      const upload = gateway.upload(bucket, key, length, attributes)
      try {
        let { facts, rest } = await streamHoldingBack(
          source,
          upload,
          length <= limits.smallBodyBytes ? length : 0,
          options,
        )
        arrived = facts
        let sent: Sent = { facts, length, etag: ownEtag, encrypted }
        return await lockUntilOutcome(
          (run) => state.locks.withKey(bucket, key, run, { waitMs: limits.keyWaitMs, logger }),
          async (lock) => {
            let found: StoredObject | undefined
            const condition: Precondition | undefined =
              precondition &&
              ((current) => {
                found = isSameWrite(current, request) ? current : undefined
                if (!found) precondition(current)
              })
            const result = await serializedWrite(
              lock,
              condition,
              () => this.findToWrite(bucket, key),
              async (order) => {
                if (found) {
                  upload.abort()
                  // It was encrypted anew for this attempt, perhaps for other recipients.
                  const { encrypted, size, storedSize = size, revision, lastModified, versionId } = found
                  sent = { facts, length: storedSize, etag: request.etag ?? found.etag, encrypted }
                  return { revision, lastModified, ...(versionId !== undefined && { versionId }) }
                }
                if (!encrypted && length > 0) await deps.encryption.requirePlainAllowed(bucket)
                // The outcome of the write may stay unknown for minutes: the bytes are not kept that long.
                const last = rest
                rest = undefined
                // Not earlier: a write whose last bytes were not sent has no effect. The key was looked up before the
                // upload, during which a gateway on one folder answers no lookup of it.
                await attempt?.begin(before?.revision ?? null)
                try {
                  if (last) await upload.write(last)
                  return await upload.commit(order)
                } catch (error) {
                  const isVoid = upload.unsent || (error instanceof S3Error && error.status < 500)
                  // Without the lock, the attempt on record may be that of another server by now.
                  if (isVoid && isHeld(lock)) await attempt?.failed()
                  throw error
                }
              },
              logger,
            )
            return this.#record(request, sent, result, marker, lock)
          },
          async (result, lock) => {
            if (result.versionId === undefined) lock.ensure()
            await this.#record(request, sent, result, marker, lock)
            await attempt?.landed(result)
          },
          logger,
        )
      } catch (error) {
        upload.abort()
        throw error
      }
    }
    const { maxBytes, event } = request
    if ((request.source.length ?? 0) > maxBytes) throw tooLarge(request.source.length ?? 0, maxBytes)
    const source = sealed ? sealedSource(request.source, sealed.header) : request.source
    const most = sealed ? sealedLength(sealed.header, maxBytes) : maxBytes
    try {
      if (source.length === undefined)
        return await spooled(deps, source, { maxBytes: most, event, wantChecksum }, store)
      return await store(source, source.length)
    } finally {
      sealed?.header.fileKey.fill(0)
    }
  }

  rewrap(bucket: string, key: string, event: Cause): Promise<Rewrapped> {
    return rewrapObject(this, this.deps.encryption, bucket, key, event)
  }

  async remove(
    bucket: string,
    key: string,
    cause: Cause,
    precondition?: Precondition,
    version?: VersionRemoval,
  ): Promise<RemovalResult> {
    if (version && (await this.deps.gateway.features()).versions) {
      return removeVersion(this.deps, this, { bucket, key, cause, precondition, version }, this.logger)
    }
    // A gateway that keeps one version of each object knows it as `null`.
    if (version && version.id !== 'null') return {}
    const { gateway, state, hooks } = this.deps
    const below = key.endsWith('/') && !(await gateway.features()).exactRemove
    const take: typeof state.locks.withKey = below ? state.locks.withSubtree : state.locks.withKey
    return lockUntilOutcome<RemovalResult>(
      (run) => take.call(state.locks, bucket, key, run, this.waiting()) as Promise<RemovalResult | undefined>,
      async (lock) => {
        const look = () => this.findToWrite(bucket, key)
        const send = (order: WriteOrder) => gateway.remove(bucket, key, order)
        const result = await serializedWrite(lock, precondition, look, send, this.logger)
        lock.ensure()
        // Behind the delete marker, the version stays, except for one without an id, whose place the marker has.
        const isGone = result.versionId === 'null' && (await isOfNull(state.objects, bucket, key))
        if (result.versionId === undefined || isGone) await state.objects.delete(bucket, key, lock)
        if (!(await gateway.features()).exactRemove) await keepFolders(this.deps, bucket, key, lock, this.logger)
        const { name, origin } = cause
        const event = { name: result.deleteMarker ? markerEvent(name) : name, origin, bucket, key, time: Date.now() }
        await hooks.objectDeleted({ ...event, ...(result.versionId !== undefined && { versionId: result.versionId }) })
        return result
      },
      async () => {},
      this.logger,
    )
  }

  async #record(
    request: PutRequest,
    { facts, length, etag: known, encrypted }: Sent,
    result: UploadResult,
    marker: boolean,
    lock: HeldLock,
  ): Promise<PutResult> {
    const { bucket, key } = request
    const { versionId } = result
    const md5 = facts.md5?.toString('hex')
    // The gateway knows the MD5 of what it has.
    const etag = known ?? (encrypted ? md5 : (result.etag ?? md5))
    if (etag === undefined) throw new Error('neither the gateway nor the body has an MD5')
    const checksum = checksumOf(request, facts)
    const gatewayTellsAll =
      result.etag === etag &&
      !checksum &&
      !request.partSizes &&
      !request.tags &&
      !request.acl &&
      !request.archive &&
      !request.attributes.label &&
      !request.attributes.headers['x-amz-website-redirect-location'] &&
      !request.authorized
    const { objects } = this.deps.state
    const revision = marker ? MARKER_REVISION : result.revision
    // A repeated write is answered with the object that it has made, which may have changed since.
    const isRepeatable =
      request.writeId !== undefined &&
      (versionId !== undefined || areRevisionsUnique(await this.deps.gateway.features()))
    const former = isRepeatable ? await objects.ofRevision(bucket, key, revision) : undefined
    const kept = former?.uploadId === request.uploadId ? former : undefined
    if (!gatewayTellsAll && !kept) {
      // Another proxy may have written meanwhile, and this record must not replace its record.
      if (versionId === undefined) lock.ensure()
      if (request.partChecksums)
        await this.deps.partChecksums.set({ bucket, key, revision, versionId }, request.partChecksums, lock)
      const record: ObjectRecord = {
        bucket,
        key,
        revision,
        size: length,
        encrypted,
        etag,
        contentType: request.attributes.contentType ?? 'binary/octet-stream',
        headers: request.attributes.headers,
        metadata: request.attributes.metadata,
        checksum,
        partSizes: request.partSizes,
        tags: request.tags,
        acl: request.acl,
        archive: request.archive,
        label: request.attributes.label,
        uploadId: request.uploadId,
        authorized: request.authorized,
        ...(versionId !== undefined && { versionId }),
      }
      await (versionId === undefined ? objects.set(record, lock) : objects.setNewest(record, lock))
      if (result.confirmed) {
        this.logger.log.warn(
          { err: result.problem, bucket },
          'could not confirm an upload yet: the object gateway does not show the object',
        )
        void this.confirmLater(bucket, key, revision, result.confirmed)
      }
    }
    const { size } = facts
    const { name, origin } = request.event
    // Without spreads, which cost more than the rest of this function.
    const event: ObjectEvent =
      versionId === undefined
        ? { name, origin, bucket, key, size, etag, time: Date.now() }
        : { name, origin, bucket, key, size, etag, time: Date.now(), versionId }
    await this.deps.hooks.objectStored(
      request.authorized && !request.sealed ? { ...event, authorized: request.authorized } : event,
    )
    const answer = { etag, lastModified: result.lastModified, size, checksum, ...(encrypted && { encrypted }) }
    if (versionId === undefined && !kept?.archive) return answer
    return { ...answer, ...(versionId !== undefined && { versionId }), ...(kept?.archive && { archive: kept.archive }) }
  }
}

/** What the gateway has got. */
interface Sent {
  /** Of the content. */
  readonly facts: BodyFacts
  /** Stored bytes. */
  readonly length: number
  /** If it is not the MD5 of the content. */
  readonly etag: string | undefined
  readonly encrypted: Encrypted | undefined
}

/** Whether the record of the key is that of the version without an id. */
async function isOfNull(objects: ObjectRecords, bucket: string, key: string): Promise<boolean> {
  const { versionId = 'null' } = (await objects.get(bucket, key)) ?? {}
  return versionId === 'null'
}

function checksumOf({ checksum }: PutRequest, facts: BodyFacts | undefined): ObjectChecksum | undefined {
  return checksum ?? (facts?.checksum && { ...facts.checksum, type: 'FULL_OBJECT' })
}

/**
 * True when an earlier attempt of this very request stored the present object, according to the gateway or the record.
 */
function isSameWrite(current: StoredObject | undefined, { writeId, uploadId }: PutRequest): boolean {
  if (writeId === undefined || !current) return false
  return current.writeId === writeId || (current.uploadId !== undefined && current.uploadId === uploadId)
}
