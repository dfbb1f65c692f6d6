import type { ObjectAcl, Tag } from '../api/access.js'
import type { CustomerKey, EncryptionOrder, ServerKey, UploadEncryption } from '../api/encryption.js'
import type { HeldLock, LockOptions } from '../api/locks.js'
import type { ByteSink } from '../api/request.js'
import type { Archive, ObjectRecord, PartRecord, UploadRecord } from '../api/state.js'
import type {
  Cause,
  MetadataReplacement,
  Precondition,
  PutRequest,
  PutResult,
  Source,
  StoredObject,
} from '../api/store.js'
import type { VersionRef } from '../api/versions.js'
import { openPart } from './encryption/opened-download.js'
import { sealedLength, sealedPart } from './encryption/sealed-source.js'
import { ObjectReader, present } from './object-reader.js'
import { aclToKeep, keepAtGateway } from './object-record.js'

/** Changes what only this server, or the gateway's record, keeps of an object: its bytes stay. */
export class ObjectChanges extends ObjectReader {
  async setTags(
    bucket: string,
    key: string,
    tags: readonly Tag[] | undefined,
    cause: Cause,
    ref?: VersionRef,
    precondition?: Precondition,
  ): Promise<StoredObject> {
    const { requireOwner, state, hooks } = this.deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = present(await this.findToWrite(bucket, key, ref), key)
      precondition?.(object)
      if (tags ?? object.tags ?? object.recordAtGateway) await this.#keep(object, { tags }, lock)
      const { size, etag, versionId } = object
      const version = versionId === undefined ? {} : { versionId }
      await hooks.objectTagged({ ...cause, bucket, key, size, etag, time: Date.now(), ...version })
      return object
    }
    return state.locks.withKey(bucket, key, run, this.waiting())
  }

  async setAcl(bucket: string, key: string, revision: string, acl: ObjectAcl | undefined): Promise<boolean> {
    const { requireOwner, state, lookUps } = this.deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findVersion(lookUps, bucket, key, revision)
      if (!object) return false
      if (acl ?? object.acl ?? object.recordAtGateway) await this.#keep(object, { acl }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, this.waiting())
  }

  async replaceMetadata(request: MetadataReplacement): Promise<PutResult | undefined> {
    const { bucket, key, revision, attributes, tags, acl, archive, authorized, event } = request
    const { requireOwner, state, hooks, lookUps } = this.deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findVersion(lookUps, bucket, key, revision)
      if (!object) return undefined
      const { headers, metadata, label, contentType = object.contentType } = attributes
      await this.#keep(object, { contentType, headers, metadata, label, tags, acl, archive, authorized }, lock)
      const { size, etag, checksum, lastModified, encrypted } = object
      const caused = authorized ? { ...event, authorized } : event
      await hooks.objectStored({ ...caused, bucket, key, size, etag, time: Date.now() })
      return { etag, lastModified, size, checksum, ...(encrypted && { encrypted }) }
    }
    return state.locks.withKey(bucket, key, run, this.waiting())
  }

  async annotate(
    bucket: string,
    key: string,
    revision: string,
    change: (archive: Archive | undefined) => Archive | undefined,
  ): Promise<boolean> {
    const { requireOwner, state, lookUps } = this.deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findVersion(lookUps, bucket, key, revision)
      if (!object) return false
      const archive = change(object.archive)
      if (archive ?? object.archive) await this.#keep(object, { archive }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, { logger: this.logger })
  }

  async storedAs(
    { encryption, uploadId, ...place }: Pick<PutRequest, 'bucket' | 'key' | 'encryption' | 'uploadId'>,
    size: number | undefined,
  ): Promise<{ readonly encrypted: boolean; readonly storedSize?: number }> {
    const { header } = (await this.deps.encryption.seal(place, encryption, uploadId)) ?? {}
    header?.fileKey.fill(0)
    const storedSize = size !== undefined && header ? sealedLength(header, size) : size
    return { encrypted: header !== undefined, ...(storedSize !== undefined && { storedSize }) }
  }

  encryptionFor(bucket: string): Promise<ServerKey | undefined> {
    return this.deps.encryption.defaultOf(bucket)
  }

  async keepsEncryption(
    { bucket, encrypted }: Pick<StoredObject, 'bucket' | 'encrypted'>,
    asked?: EncryptionOrder,
  ): Promise<boolean> {
    const order = asked ?? (await this.encryptionFor(bucket))
    if (!order) return encrypted?.algorithm !== 'SSE-C'
    if (order.algorithm === 'SSE-C' || order.algorithm !== encrypted?.algorithm) return false
    return order.keyId === undefined || order.keyId === encrypted.keyId
  }

  encryptionOfUpload(
    { uploadId, ...place }: Pick<UploadRecord, 'bucket' | 'key' | 'uploadId'>,
    asked: EncryptionOrder | undefined,
  ): Promise<UploadEncryption | undefined> {
    return this.deps.encryption.beginUpload(place, uploadId, asked)
  }

  requireUploadKey(upload: UploadRecord, customer: CustomerKey | undefined): Promise<void> {
    return this.deps.encryption.requireUploadKey(upload, upload.encryption, customer)
  }

  async stagedSource({ uploadId, encryption }: UploadRecord, part: Source): Promise<Source> {
    if (!encryption) return part
    const key = await this.deps.encryption.partsKey(uploadId, encryption.partsKey)
    return sealedPart(part, key, encryption.algorithm !== 'AES256')
  }

  async readPart({ uploadId, encryption }: UploadRecord, part: PartRecord, sink: ByteSink): Promise<void> {
    const { uploads } = this.deps.state
    const read = (to: ByteSink) => uploads.readPart(uploadId, part, to)
    if (!encryption || part.staged === undefined) return read(sink)
    await openPart(await this.deps.encryption.partsKey(uploadId, encryption.partsKey), part.staged, read, sink)
  }

  protected waiting(): LockOptions {
    return { waitMs: this.deps.limits.keyWaitMs, logger: this.logger }
  }

  /** Writes the object's record with `change` applied. */
  async #keep(object: StoredObject, change: Partial<ObjectRecord>, lock: HeldLock): Promise<void> {
    const { lastModified: _, cold: __, writeId: ___, aclAtGateway: ____, lock: _____, ...known } = object
    const { recordAtGateway, storedSize, ...described } = known
    const record = storedSize === undefined ? described : { ...described, size: storedSize }
    const acl = aclToKeep(object)
    const next = { ...record, ...(acl && { acl }), ...change }
    if (recordAtGateway && ('tags' in change || 'acl' in change)) await keepAtGateway(this.deps.gateway, next, lock)
    lock.ensure()
    const { objects } = this.deps.state
    await (object.versionId === undefined ? objects.set(next, lock) : objects.setVersion(next, lock))
  }
}
