import type { Logging } from '../../common/log.js'
import type { ObjectAcl, Tag } from '../api/access.js'
import type { HeldLock, LockOptions } from '../api/locks.js'
import type { Archive, ObjectRecord } from '../api/object-records.js'
import type { Cause, MetadataReplacement, Precondition, PutResult, StoredObject } from '../api/store.js'
import type { VersionRef } from '../api/versions.js'
import { type ObjectReader, present } from './object-reader.js'
import { aclToKeep, keepAtGateway } from './object-record.js'
import type { StoreDeps } from './store-deps.js'

/** Changes what only this server, or the gateway's record, keeps of an object: its bytes stay. */
export class ObjectChanges {
  readonly #deps: StoreDeps
  readonly #reader: ObjectReader
  readonly #logger: Logging

  /** @param reader of the same objects */
  constructor(deps: StoreDeps, reader: ObjectReader, logger: Logging) {
    this.#deps = deps
    this.#reader = reader
    this.#logger = logger
  }

  async setTags(
    bucket: string,
    key: string,
    tags: readonly Tag[] | undefined,
    cause: Cause,
    ref?: VersionRef,
    precondition?: Precondition,
  ): Promise<StoredObject> {
    const { requireOwner, state, hooks } = this.#deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = present(await this.#reader.findToWrite(bucket, key, ref), key)
      precondition?.(object)
      if (tags ?? object.tags ?? object.recordAtGateway) await this.#keep(object, { tags }, lock)
      const { size, etag, versionId } = object
      const version = versionId === undefined ? {} : { versionId }
      await hooks.objectTagged({ ...cause, bucket, key, size, etag, time: Date.now(), ...version })
      return object
    }
    return state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async setAcl(bucket: string, key: string, revision: string, acl: ObjectAcl | undefined): Promise<boolean> {
    const { requireOwner, state, lookUps } = this.#deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.#reader.findVersion(lookUps, bucket, key, revision)
      if (!object) return false
      if (acl ?? object.acl ?? object.recordAtGateway) await this.#keep(object, { acl }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async replaceMetadata(request: MetadataReplacement): Promise<PutResult | undefined> {
    const { bucket, key, revision, attributes, tags, acl, archive, authorized, event } = request
    const { requireOwner, state, hooks, lookUps } = this.#deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.#reader.findVersion(lookUps, bucket, key, revision)
      if (!object) return undefined
      const { headers, metadata, label, contentType = object.contentType } = attributes
      await this.#keep(object, { contentType, headers, metadata, label, tags, acl, archive, authorized }, lock)
      const { size, etag, checksum, lastModified, encrypted } = object
      const caused = authorized ? { ...event, authorized } : event
      await hooks.objectStored({ ...caused, bucket, key, size, etag, time: Date.now() })
      return { etag, lastModified, size, checksum, ...(encrypted && { encrypted }) }
    }
    return state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async annotate(
    bucket: string,
    key: string,
    revision: string,
    change: (archive: Archive | undefined) => Archive | undefined,
  ): Promise<boolean> {
    const { requireOwner, state, lookUps } = this.#deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.#reader.findVersion(lookUps, bucket, key, revision)
      if (!object) return false
      const archive = change(object.archive)
      if (archive ?? object.archive) await this.#keep(object, { archive }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, { logger: this.#logger })
  }

  #waiting(): LockOptions {
    return { waitMs: this.#deps.limits.keyWaitMs, logger: this.#logger }
  }

  /** Writes the object's record with `change` applied. */
  async #keep(object: StoredObject, change: Partial<ObjectRecord>, lock: HeldLock): Promise<void> {
    const { lastModified: _, cold: __, writeId: ___, aclAtGateway: ____, lock: _____, ...known } = object
    const { recordAtGateway, storedSize, ...described } = known
    const record = storedSize === undefined ? described : { ...described, size: storedSize }
    const acl = aclToKeep(object)
    const next = { ...record, ...(acl && { acl }), ...change }
    if (recordAtGateway && ('tags' in change || 'acl' in change)) await keepAtGateway(this.#deps.gateway, next, lock)
    lock.ensure()
    const { objects } = this.#deps.state
    await (object.versionId === undefined ? objects.set(next, lock) : objects.setVersion(next, lock))
  }
}
