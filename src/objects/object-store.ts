import type { ObjectAcl, Tag } from '../api/access.js'
import type { ByteRange, Download, GatewayObject, ListQuery } from '../api/gateway.js'
import type { HeldLock, LockOptions } from '../api/locks.js'
import type { Archive, ObjectRecord } from '../api/state.js'
import type {
  Cause,
  MetadataReplacement,
  PartChecksums,
  Precondition,
  PutRequest,
  PutResult,
  Store,
  StoredObject,
  StoreEntry,
  StorePage,
} from '../api/store.js'
import { S3Error } from '../common/errors/s3-error.js'
import type { Logging } from '../common/log.js'
import { MARKER_STAMP } from '../gateway/object-facts.js'
import {
  confirmRecord,
  emptyDownload,
  etagOf,
  findMarker,
  findObject,
  joinRecord,
  LOOKS,
  withMetadata,
} from './find-object.js'
import { isOvertaken, keepAtGateway, validRecord } from './object-record.js'
import { put } from './put.js'
import { isUnconfirmed, lockUntilOutcome, type StoreDeps, serializedWrite } from './serialized-write.js'

/** The objects of one gateway account. A class, because each request has one of its own, for the lines about it. */
export class ObjectStore implements Store {
  readonly #deps: StoreDeps
  readonly #logger: Logging

  /** @param logger who gets the lines about what is done */
  constructor(deps: StoreDeps, logger: Logging = deps) {
    this.#deps = deps
    this.#logger = logger
  }

  /** The same objects, for a request. */
  for(logger: Logging): Store {
    return new ObjectStore(this.#deps, logger)
  }

  find(bucket: string, key: string): Promise<StoredObject | undefined> {
    return findObject(this.#deps, this.#logger, this.#deps.gateway, bucket, key)
  }

  findToWrite(bucket: string, key: string): Promise<StoredObject | undefined> {
    return findObject(this.#deps, this.#logger, this.#deps.lookUps, bucket, key)
  }

  async head(bucket: string, key: string): Promise<StoredObject> {
    return present(await this.find(bucket, key), key)
  }

  async open(bucket: string, key: string, range?: ByteRange): Promise<{ object: StoredObject; download: Download }> {
    const { gateway, state } = this.#deps
    for (let attempt = 1; ; attempt++) {
      const record = state.objects.get(bucket, key)
      record.catch(() => {})
      try {
        const download = await gateway.download(bucket, key, range)
        if (attempt < LOOKS && isOvertaken(download.object, await record)) {
          download.discard()
          continue
        }
        const known = confirmRecord(this.#deps, this.#logger, bucket, download.object, await record)
        return { object: joinRecord(bucket, download.object, known), download }
      } catch (error) {
        if (!(error instanceof S3Error) || error.code !== 'NoSuchKey') throw error
        const marker = await findMarker(gateway, bucket, key, await record)
        if (!marker) throw error
        return { object: marker, download: emptyDownload(key) }
      }
    }
  }

  put(request: PutRequest): Promise<PutResult> {
    return put(this.#deps, (bucket, key) => this.findToWrite(bucket, key), request, this.#logger)
  }

  async remove(bucket: string, key: string, cause: Cause, precondition?: Precondition): Promise<void> {
    const { gateway, state, hooks } = this.#deps
    const below = key.endsWith('/') && !(await gateway.features()).exactRemove
    const take: typeof state.locks.withKey = below ? state.locks.withSubtree : state.locks.withKey
    await lockUntilOutcome<void>(
      (run) => take.call(state.locks, bucket, key, run, this.#waiting()) as Promise<void>,
      async (lock) => {
        const look = () => this.findToWrite(bucket, key)
        await serializedWrite(lock, precondition, look, (order) => gateway.remove(bucket, key, order), this.#logger)
        lock.ensure()
        await state.objects.delete(bucket, key, lock)
        if (!(await gateway.features()).exactRemove) await keepMarkers(this.#deps, bucket, key, lock, this.#logger)
        const { name, origin } = cause
        await hooks.objectDeleted({ name, origin, bucket, key, time: Date.now() })
      },
      async () => {},
      this.#logger,
    )
  }

  async setTags(bucket: string, key: string, tags: readonly Tag[] | undefined, cause: Cause): Promise<void> {
    const { requireOwner, state, hooks } = this.#deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = present(await this.findToWrite(bucket, key), key)
      if (tags ?? object.tags ?? object.recordAtGateway) await this.#keep(object, { tags }, lock)
      const { size, etag } = object
      await hooks.objectTagged({ ...cause, bucket, key, size, etag, time: Date.now() })
    }
    await state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async setAcl(bucket: string, key: string, stamp: string, acl: ObjectAcl | undefined): Promise<boolean> {
    const { requireOwner, state } = this.#deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findToWrite(bucket, key)
      if (object?.stamp !== stamp) return false
      if (acl ?? object.acl ?? object.recordAtGateway) await this.#keep(object, { acl }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, this.#waiting())
  }

  async replaceMetadata(request: MetadataReplacement): Promise<PutResult | undefined> {
    const { bucket, key, stamp, attributes, tags, acl, archive, authorized, event } = request
    const { requireOwner, state, hooks } = this.#deps
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
    const { requireOwner, state } = this.#deps
    await requireOwner(bucket)
    const run = async (lock: HeldLock) => {
      const object = await this.findToWrite(bucket, key)
      if (object?.stamp !== stamp) return false
      const archive = change(object.archive)
      if (archive ?? object.archive) await this.#keep(object, { archive }, lock)
      return true
    }
    return state.locks.withKey(bucket, key, run, { logger: this.#logger })
  }

  async partChecksums(object: StoredObject): Promise<PartChecksums | undefined> {
    return object.partSizes ? this.#deps.partChecksums.get(object) : undefined
  }

  list(bucket: string, query: ListQuery): Promise<StorePage> {
    return list(this.#deps, bucket, query, (object, record) => this.#confirmListed(bucket, object, record))
  }

  #waiting(): LockOptions {
    return { waitMs: this.#deps.limits.keyWaitMs, logger: this.#logger }
  }

  /** The record of a listed object. Confirms an unconfirmed record if the gateway can be queried now. */
  async #confirmListed(bucket: string, object: GatewayObject, record: ObjectRecord): Promise<ObjectRecord> {
    try {
      const reported = await withMetadata(this.#deps.gateway, bucket, object)
      return confirmRecord(this.#deps, this.#logger, bucket, reported, record)
    } catch (err) {
      this.#logger.log.debug({ err, bucket }, 'could not confirm the record of an object yet')
      return record
    }
  }

  /** Writes the object's record with `change` applied. */
  async #keep(object: StoredObject, change: Partial<ObjectRecord>, lock: HeldLock): Promise<void> {
    const { lastModified: _, cold: __, writeId: ___, recordAtGateway, aclAtGateway, ...record } = object
    // Another change does not open an object by an ACL that the state does not have.
    const closed = aclAtGateway && record.acl && { acl: { owner: record.acl.owner, grants: [] } }
    const next = { ...record, ...closed, ...change }
    if (recordAtGateway && ('tags' in change || 'acl' in change)) await keepAtGateway(this.#deps.gateway, next, lock)
    lock.ensure()
    await this.#deps.state.objects.set(next, lock)
  }
}

function present(object: StoredObject | undefined, key: string): StoredObject {
  if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
  return object
}

/**
 * Restores folder objects after a removal. A gateway that keeps objects as files removes a folder with its last file,
 * also when a client had stored the folder as an object of its own (`photos/`). This keeps the promise that DELETE
 * deletes one key.
 */
async function keepMarkers(
  { gateway, state }: Pick<StoreDeps, 'gateway' | 'state'>,
  bucket: string,
  removed: string,
  lock: HeldLock,
  logger: Logging,
): Promise<void> {
  const folders = foldersAbove(removed)
  const records = await state.objects.getMany(bucket, folders)
  const markers = folders.filter((_, i) => records[i]?.stamp === MARKER_STAMP)
  // Storing the innermost folder also creates the folders around it.
  const innermost = markers.at(-1)
  if (innermost === undefined) return
  const { entries } = await gateway.list(bucket, { prefix: innermost, delimiter: '', after: '', limit: 1 })
  if (entries.length > 0) return
  const attributes = { contentType: undefined, headers: {}, metadata: {} }
  const order = { fence: lock.fence, ensure: () => lock.ensure(), logger }
  await gateway.upload(bucket, innermost, 0, attributes).commit(order)
}

/** `a/` and `a/b/` for `a/b/c`, without the key itself. */
function foldersAbove(key: string): string[] {
  const folders: string[] = []
  for (let at = key.indexOf('/'); at >= 0 && at < key.length - 1; at = key.indexOf('/', at + 1))
    folders.push(key.slice(0, at + 1))
  return folders
}

/** A page of the gateway's listing, completed from the records with what the gateway does not list. */
async function list(
  { gateway, state }: Pick<StoreDeps, 'gateway' | 'state'>,
  bucket: string,
  query: ListQuery,
  confirm: (object: GatewayObject, record: ObjectRecord) => Promise<ObjectRecord>,
): Promise<StorePage> {
  const page = await gateway.list(bucket, query)
  const keys: string[] = []
  for (const entry of page.entries) if (entry.kind === 'object') keys.push(entry.object.key)
  // One read for the whole page: no gateway lists checksums and storage classes.
  const records = keys.length === 0 ? [] : await state.objects.getMany(bucket, keys)
  const entries: StoreEntry[] = []
  let at = 0
  for (const entry of page.entries) {
    if (entry.kind === 'prefix') {
      entries.push(entry)
      continue
    }
    const { object } = entry
    let record = records[at++]
    // Rare: the gateway failed between an upload and the lookup of the stored object.
    if (record && isUnconfirmed(record, object)) record = await confirm(object, record)
    entries.push(toEntry(bucket, object, validRecord(object, record)))
  }
  return { entries, truncated: page.truncated }
}

function toEntry(bucket: string, object: GatewayObject, record: ObjectRecord | undefined): StoreEntry {
  return {
    kind: 'object',
    key: object.key,
    size: object.size,
    etag: etagOf(bucket, object, record),
    lastModified: object.lastModified,
    checksum: record?.checksum,
    archive: record?.archive,
    label: record?.label,
    cold: object.cold === true,
  }
}
