import { S3Error } from '../errors/s3-error.js'
import type { Gateway, GatewayObject } from '../gateway/gateway.js'
import type { Limits } from '../limits.js'
import type { Hooks } from '../registry/hooks.js'
import type { ObjectRecord, State } from '../state/state.js'
import { describe, EMPTY_MD5, etagOf, MARKER_STAMP, validRecord } from './describe.js'
import { keepMarkers } from './keep-markers.js'
import type { PartChecksumRecords } from './part-checksums.js'
import { put } from './put.js'
import type { Store, StoredObject, StoreEntry } from './store.js'

export interface StoreParts {
  readonly gateway: Gateway
  /** The same, for what has to be known of an object in order to replace or remove it: whoever may write it need not be able to read it. */
  readonly lookUps: Gateway
  readonly state: State
  readonly limits: Limits
  readonly hooks: Hooks
  readonly partChecksums: PartChecksumRecords
  /** True when plugins offer storage classes: listings then look into every object's record. */
  readonly archives: boolean
}

export function createStore(parts: StoreParts): Store {
  const { gateway, lookUps, state } = parts
  const find = (bucket: string, key: string) => findBy(gateway, bucket, key)
  const findToWrite = (bucket: string, key: string) => findBy(lookUps, bucket, key)

  async function findBy(by: Gateway, bucket: string, key: string): Promise<StoredObject | undefined> {
    const [object, record] = await Promise.all([by.stat(bucket, key), state.objects.get(bucket, key)])
    if (!object) return findMarker(by, bucket, key, record)
    if (object.metadata || validRecord(object, record)) return describe(bucket, object, record)
    return describe(bucket, await withMetadata(by, bucket, object), record)
  }

  /** A legacy gateway tells metadata on download alone, and only an object stored behind our back has no record. */
  async function withMetadata(by: Gateway, bucket: string, object: GatewayObject): Promise<GatewayObject> {
    const download = await by.download(bucket, object.key)
    download.discard()
    return download.object
  }

  /** A folder with content shows no object of its own on a legacy gateway: the record says that one was stored. */
  async function findMarker(
    by: Gateway,
    bucket: string,
    key: string,
    record: ObjectRecord | undefined,
  ): Promise<StoredObject | undefined> {
    if (record?.stamp !== MARKER_STAMP || record.key !== key) return undefined
    const below = await by.list(bucket, { prefix: key, delimiter: '', after: '', limit: 1 })
    return below.entries.length === 0 ? undefined : describe(bucket, markerObject(key), record)
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
        return { object: describe(bucket, download.object, await record), download }
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
      const lock: typeof state.locks.withKey = below ? state.locks.withSubtree : state.locks.withKey
      await lock.call(state.locks, bucket, key, async () => {
        if (precondition) precondition(await findToWrite(bucket, key))
        await gateway.remove(bucket, key)
        await state.objects.delete(bucket, key)
        if (!(await gateway.features()).exactRemove) await keepMarkers(parts, bucket, key)
        await parts.hooks.objectDeleted({ ...cause, bucket, key, time: Date.now() })
      })
    },

    async setTags(bucket, key, tags, cause) {
      await state.locks.withKey(bucket, key, async () => {
        const object = present(await findToWrite(bucket, key), key)
        const { lastModified: _, cold: __, ...record } = object
        if (tags ?? object.tags) await state.objects.set({ ...record, tags })
        await parts.hooks.objectTagged({
          ...cause,
          bucket,
          key,
          size: object.size,
          etag: object.etag,
          time: Date.now(),
        })
      })
    },

    describe: ({ bucket, key, stamp, attributes, tags, archive, event }) =>
      state.locks.withKey(bucket, key, async () => {
        const object = await findToWrite(bucket, key)
        if (object?.stamp !== stamp) return undefined
        const { lastModified, cold: _, ...record } = object
        const { headers, metadata, contentType = object.contentType } = attributes
        await state.objects.set({ ...record, contentType, headers, metadata, tags, archive })
        const { size, etag, checksum } = object
        await parts.hooks.objectStored({ ...event, bucket, key, size, etag, time: Date.now() })
        return { etag, lastModified, size, checksum }
      }),

    annotate: (bucket, key, stamp, change) =>
      state.locks.withKey(bucket, key, async () => {
        const object = await findToWrite(bucket, key)
        if (object?.stamp !== stamp) return false
        const archive = change(object.archive)
        const { lastModified: _, cold: __, ...record } = object
        if (archive ?? object.archive) await state.objects.set({ ...record, archive })
        return true
      }),

    partChecksums: async (object) => (object.partSizes ? parts.partChecksums.get(object) : undefined),

    async list(bucket, query) {
      const page = await gateway.list(bucket, query)
      const unknown = page.entries.flatMap((entry) =>
        entry.kind === 'object' && (parts.archives || entry.object.etag === undefined) ? [entry.object] : [],
      )
      const records =
        unknown.length === 0
          ? []
          : await state.objects.getMany(
              bucket,
              unknown.map((object) => object.key),
            )
      const recordOf = new Map(unknown.map((object, i) => [object, records[i]]))
      const entries = page.entries.map((entry): StoreEntry => {
        if (entry.kind === 'prefix') return entry
        const { object } = entry
        const record = validRecord(object, recordOf.get(object))
        return {
          kind: 'object',
          key: object.key,
          size: object.size,
          etag: etagOf(bucket, object, record),
          lastModified: object.lastModified,
          archive: record?.archive,
          cold: object.cold === true,
        }
      })
      return { entries, truncated: page.truncated }
    },
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
