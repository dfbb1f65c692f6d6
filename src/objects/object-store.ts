import type { RequireOwner } from '../access/require-owner.js'
import { S3Error } from '../common/errors/s3-error.js'
import type { Logger, Logging } from '../common/log.js'
import type { Quota } from '../common/quota.js'
import type { ByteRange, Download, Gateway, GatewayObject, ListQuery } from '../gateway/gateway.js'
import type { Hooks } from '../plugins/forms/hooks.js'
import type { Limits } from '../server/limits.js'
import type { ObjectAcl } from '../state/object-acl.js'
import type { Archive, HeldLock, LockOptions, ObjectRecord, State, Tag } from '../state/state.js'
import { confirmRecord, emptyDownload, findMarker, findObject, withMetadata } from './find-object.js'
import { joinRecord } from './join-record.js'
import { keepMarkers } from './keep-markers.js'
import { list } from './list.js'
import type { PartChecksumRecords, PartChecksums } from './part-checksums.js'
import { put } from './put.js'
import { lockUntilOutcome, serializedWrite } from './serialized-write.js'
import type {
  Cause,
  MetadataReplacement,
  Precondition,
  PutRequest,
  PutResult,
  Store,
  StoredObject,
  StorePage,
} from './store.js'

export interface StoreParts {
  readonly gateway: Gateway
  /**
   * The gateway for lookups that precede a write or removal: a caller who may write an object need not be able to read
   * it.
   */
  readonly lookUps: Gateway
  /** Called before a change to data of an object that only this server keeps: no gateway call guards it. */
  readonly requireOwner: RequireOwner
  readonly state: State
  readonly limits: Limits
  /** For the lines of work that no request asked for. */
  readonly log: Logger
  readonly hooks: Hooks
  readonly partChecksums: PartChecksumRecords
  /** Quota for bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
}

/** The objects of one gateway account. A class, because each request has one of its own, for the lines about it. */
export class ObjectStore implements Store {
  readonly #parts: StoreParts
  readonly #by: Logging

  /** @param by who gets the lines about what is done */
  constructor(parts: StoreParts, by: Logging = parts) {
    this.#parts = parts
    this.#by = by
  }

  /** The same objects, for a request. */
  for(by: Logging): Store {
    return new ObjectStore(this.#parts, by)
  }

  find(bucket: string, key: string): Promise<StoredObject | undefined> {
    return findObject(this.#parts, this.#by, this.#parts.gateway, bucket, key)
  }

  findToWrite(bucket: string, key: string): Promise<StoredObject | undefined> {
    return findObject(this.#parts, this.#by, this.#parts.lookUps, bucket, key)
  }

  async head(bucket: string, key: string): Promise<StoredObject> {
    return present(await this.find(bucket, key), key)
  }

  async open(bucket: string, key: string, range?: ByteRange): Promise<{ object: StoredObject; download: Download }> {
    const { gateway, state } = this.#parts
    const record = state.objects.get(bucket, key)
    record.catch(() => {})
    try {
      const download = await gateway.download(bucket, key, range)
      const known = confirmRecord(this.#parts, this.#by, bucket, download.object, await record)
      return { object: joinRecord(bucket, download.object, known), download }
    } catch (error) {
      if (!(error instanceof S3Error) || error.code !== 'NoSuchKey') throw error
      const marker = await findMarker(gateway, bucket, key, await record)
      if (!marker) throw error
      return { object: marker, download: emptyDownload(key) }
    }
  }

  put(request: PutRequest): Promise<PutResult> {
    return put(this.#parts, (bucket, key) => this.findToWrite(bucket, key), request, this.#by)
  }

  async remove(bucket: string, key: string, cause: Cause, precondition?: Precondition): Promise<void> {
    const { gateway, state, hooks } = this.#parts
    const below = key.endsWith('/') && !(await gateway.features()).exactRemove
    const take: typeof state.locks.withKey = below ? state.locks.withSubtree : state.locks.withKey
    await lockUntilOutcome<void>(
      (run) => take.call(state.locks, bucket, key, run, this.#waiting()) as Promise<void>,
      async (lock) => {
        const look = () => this.findToWrite(bucket, key)
        await serializedWrite(lock, precondition, look, (order) => gateway.remove(bucket, key, order), this.#by)
        lock.ensure()
        await state.objects.delete(bucket, key, lock)
        if (!(await gateway.features()).exactRemove) await keepMarkers(this.#parts, bucket, key, lock, this.#by)
        const { name, origin } = cause
        await hooks.objectDeleted({ name, origin, bucket, key, time: Date.now() })
      },
      async () => {},
      this.#by,
    )
  }

  async setTags(bucket: string, key: string, tags: readonly Tag[] | undefined, cause: Cause): Promise<void> {
    const { requireOwner, state, hooks } = this.#parts
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = present(await this.findToWrite(bucket, key), key)
      if (tags ?? object.tags) await this.#keep(object, { tags }, lock)
      const { size, etag } = object
      await hooks.objectTagged({ ...cause, bucket, key, size, etag, time: Date.now() })
    }
    await state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async setAcl(bucket: string, key: string, stamp: string, acl: ObjectAcl | undefined): Promise<boolean> {
    const { requireOwner, state } = this.#parts
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findToWrite(bucket, key)
      if (object?.stamp !== stamp) return false
      if (acl ?? object.acl) await this.#keep(object, { acl }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async replaceMetadata(request: MetadataReplacement): Promise<PutResult | undefined> {
    const { bucket, key, stamp, attributes, tags, acl, archive, authorized, event } = request
    const { requireOwner, state, hooks } = this.#parts
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findToWrite(bucket, key)
      if (object?.stamp !== stamp) return undefined
      const { headers, metadata, label, contentType = object.contentType } = attributes
      await this.#keep(object, { contentType, headers, metadata, label, tags, acl, archive, authorized }, lock)
      const { size, etag, checksum, lastModified } = object
      const caused = authorized ? { ...event, authorized } : event
      await hooks.objectStored({ ...caused, bucket, key, size, etag, time: Date.now() })
      return { etag, lastModified, size, checksum }
    }
    return state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async annotate(
    bucket: string,
    key: string,
    stamp: string,
    change: (archive: Archive | undefined) => Archive | undefined,
  ): Promise<boolean> {
    const { requireOwner, state } = this.#parts
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findToWrite(bucket, key)
      if (object?.stamp !== stamp) return false
      const archive = change(object.archive)
      if (archive ?? object.archive) await this.#keep(object, { archive }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, { by: this.#by })
  }

  async partChecksums(object: StoredObject): Promise<PartChecksums | undefined> {
    return object.partSizes ? this.#parts.partChecksums.get(object) : undefined
  }

  list(bucket: string, query: ListQuery): Promise<StorePage> {
    return list(this.#parts, bucket, query, (object, record) => this.#confirmListed(bucket, object, record))
  }

  #waiting(): LockOptions {
    return { waitMs: this.#parts.limits.keyWaitMs, by: this.#by }
  }

  /** The record of a listed object. Confirms an unconfirmed record if the gateway can be queried now. */
  async #confirmListed(bucket: string, object: GatewayObject, record: ObjectRecord): Promise<ObjectRecord> {
    try {
      const told = await withMetadata(this.#parts.gateway, bucket, object)
      return confirmRecord(this.#parts, this.#by, bucket, told, record)
    } catch (err) {
      this.#by.log.debug({ err, bucket }, 'could not confirm the record of an object yet')
      return record
    }
  }

  /** Writes the object's record with `change` applied. */
  #keep(object: StoredObject, change: Partial<ObjectRecord>, lock: HeldLock): Promise<void> {
    const { lastModified: _, cold: __, writeId: ___, ...record } = object
    lock.ensure()
    return this.#parts.state.objects.set({ ...record, ...change }, lock)
  }
}

function present(object: StoredObject | undefined, key: string): StoredObject {
  if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
  return object
}
