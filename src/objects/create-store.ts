import type { RequireOwner } from '../access/require-owner.js'
import { S3Error } from '../common/errors/s3-error.js'
import type { Logger } from '../common/log.js'
import type { Quota } from '../common/quota.js'
import type { Gateway, GatewayObject } from '../gateway/gateway.js'
import { MARKER_STAMP } from '../gateway/object-facts.js'
import type { Hooks } from '../plugins/forms/hooks.js'
import type { Limits } from '../server/limits.js'
import type { HeldLock, ObjectRecord, State } from '../state/state.js'
import { confirmLater } from './confirm-later.js'
import { EMPTY_MD5, joinRecord, validRecord } from './join-record.js'
import { keepMarkers } from './keep-markers.js'
import { list } from './list.js'
import type { PartChecksumRecords } from './part-checksums.js'
import { put } from './put.js'
import { lockUntilOutcome, serializedWrite } from './serialized-write.js'
import type { Store, StoredObject } from './store.js'
import { confirmed } from './unconfirmed.js'

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
  readonly log: Logger
  readonly hooks: Hooks
  readonly partChecksums: PartChecksumRecords
  /** Quota for bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
}

export function createStore(parts: StoreParts): Store {
  const { gateway, lookUps, state, log } = parts
  const limited = {
    get waitMs() {
      return parts.limits.keyWaitMs
    },
  }
  const find = (bucket: string, key: string) => findBy(gateway, bucket, key)
  const findToWrite = (bucket: string, key: string) => findBy(lookUps, bucket, key)

  async function findBy(by: Gateway, bucket: string, key: string): Promise<StoredObject | undefined> {
    const [object, record] = await Promise.all([by.stat(bucket, key), state.objects.get(bucket, key)])
    if (!object) return findMarker(by, bucket, key, record)
    if (object.metadata || validRecord(object, record)) return joinRecord(bucket, object, record)
    const told = await withMetadata(by, bucket, object)
    return joinRecord(bucket, told, confirmRecord(bucket, told, record))
  }

  /** The record of a listed object. Confirms an unconfirmed record if the gateway can be queried now. */
  async function confirmListed(bucket: string, object: GatewayObject, record: ObjectRecord) {
    try {
      return confirmRecord(bucket, await withMetadata(gateway, bucket, object), record)
    } catch (err) {
      log.debug({ err, bucket }, 'could not confirm the record of an object yet')
      return record
    }
  }

  /** Gives an unconfirmed record its stamp if the object comes from the write that the record describes. */
  function confirmRecord<R extends ObjectRecord | undefined>(bucket: string, object: GatewayObject, record: R): R {
    const known = confirmed(object, record)
    if (record && known !== record)
      void confirmLater(parts, bucket, object.key, record.stamp, Promise.resolve({ stamp: object.stamp }))
    return known
  }

  /**
   * Reads the metadata from a download, because a legacy gateway returns it nowhere else. Only objects stored without
   * this server have no record.
   */
  async function withMetadata(by: Gateway, bucket: string, object: GatewayObject): Promise<GatewayObject> {
    const download = await by.download(bucket, object.key)
    download.discard()
    return download.object
  }

  /** A legacy gateway does not show the object of a folder that has content: the record shows that one was stored. */
  async function findMarker(
    by: Gateway,
    bucket: string,
    key: string,
    record: ObjectRecord | undefined,
  ): Promise<StoredObject | undefined> {
    if (record?.stamp !== MARKER_STAMP || record.key !== key) return undefined
    const below = await by.list(bucket, { prefix: key, delimiter: '', after: '', limit: 1 })
    return below.entries.length === 0 ? undefined : joinRecord(bucket, markerObject(key), record)
  }

  /** Writes the object's record with `change` applied. */
  function keep(object: StoredObject, change: Partial<ObjectRecord>, lock: HeldLock): Promise<void> {
    const { lastModified: _, cold: __, writeId: ___, ...record } = object
    lock.ensure()
    return state.objects.set({ ...record, ...change })
  }

  return {
    find,
    findToWrite,
    head: async (bucket, key) => present(await find(bucket, key), key),

    async open(bucket, key, range) {
      const record = state.objects.get(bucket, key)
      record.catch(() => {})
      try {
        const download = await gateway.download(bucket, key, range)
        const known = confirmRecord(bucket, download.object, await record)
        return { object: joinRecord(bucket, download.object, known), download }
      } catch (error) {
        if (!(error instanceof S3Error) || error.code !== 'NoSuchKey') throw error
        const marker = await findMarker(gateway, bucket, key, await record)
        if (!marker) throw error
        return { object: marker, download: emptyDownload(key) }
      }
    },

    put: (request) => put(parts, findToWrite, request),

    async remove(bucket, key, cause, precondition) {
      const below = key.endsWith('/') && !(await gateway.features()).exactRemove
      const take: typeof state.locks.withKey = below ? state.locks.withSubtree : state.locks.withKey
      await lockUntilOutcome<void>(
        (run) => take.call(state.locks, bucket, key, run, limited) as Promise<void>,
        async (lock) => {
          const look = () => findToWrite(bucket, key)
          await serializedWrite(lock, precondition, look, (order) => gateway.remove(bucket, key, order))
          lock.ensure()
          await state.objects.delete(bucket, key)
          if (!(await gateway.features()).exactRemove) await keepMarkers(parts, bucket, key, lock)
          const { name, origin } = cause
          await parts.hooks.objectDeleted({ name, origin, bucket, key, time: Date.now() })
        },
        async () => {},
        log,
      )
    },

    async setTags(bucket, key, tags, cause) {
      await parts.requireOwner(bucket)
      const run = async (lock: HeldLock) => {
        const object = present(await findToWrite(bucket, key), key)
        if (tags ?? object.tags) await keep(object, { tags }, lock)
        const { size, etag } = object
        await parts.hooks.objectTagged({ ...cause, bucket, key, size, etag, time: Date.now() })
      }
      await state.locks.withKey(bucket, key, run, limited)
    },

    async setAcl(bucket, key, stamp, acl) {
      await parts.requireOwner(bucket)
      return state.locks.withKey(
        bucket,
        key,
        async (lock) => {
          const object = await findToWrite(bucket, key)
          if (object?.stamp !== stamp) return false
          if (acl ?? object.acl) await keep(object, { acl }, lock)
          return true
        },
        limited,
      )
    },

    async replaceMetadata({ bucket, key, stamp, attributes, tags, acl, archive, authorized, event }) {
      await parts.requireOwner(bucket)
      const run = async (lock: HeldLock) => {
        const object = await findToWrite(bucket, key)
        if (object?.stamp !== stamp) return undefined
        const { headers, metadata, contentType = object.contentType } = attributes
        await keep(object, { contentType, headers, metadata, tags, acl, archive, authorized }, lock)
        const { size, etag, checksum, lastModified } = object
        const caused = authorized ? { ...event, authorized } : event
        await parts.hooks.objectStored({ ...caused, bucket, key, size, etag, time: Date.now() })
        return { etag, lastModified, size, checksum }
      }
      return state.locks.withKey(bucket, key, run, limited)
    },

    async annotate(bucket, key, stamp, change) {
      await parts.requireOwner(bucket)
      return state.locks.withKey(bucket, key, async (lock) => {
        const object = await findToWrite(bucket, key)
        if (object?.stamp !== stamp) return false
        const archive = change(object.archive)
        if (archive ?? object.archive) await keep(object, { archive }, lock)
        return true
      })
    },

    partChecksums: async (object) => (object.partSizes ? parts.partChecksums.get(object) : undefined),

    list: (bucket, query) => list(parts, bucket, query, (object, record) => confirmListed(bucket, object, record)),
  }
}

function present(object: StoredObject | undefined, key: string): StoredObject {
  if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
  return object
}

function markerObject(key: string): GatewayObject {
  return {
    key,
    size: 0,
    lastModified: '1970-01-01T00:00:00Z',
    contentType: 'binary/octet-stream',
    stamp: MARKER_STAMP,
    etag: EMPTY_MD5,
    headers: {},
    metadata: {},
  }
}

function emptyDownload(key: string) {
  return {
    object: markerObject(key),
    first: 0,
    last: -1,
    consume: async () => {},
    lend: async () => {},
    discard: () => {},
  }
}
