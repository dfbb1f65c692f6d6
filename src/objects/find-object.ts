import type { Logging } from '../common/log.js'
import type { Gateway, GatewayObject } from '../gateway/gateway.js'
import { MARKER_STAMP } from '../gateway/object-facts.js'
import type { ObjectRecord } from '../state/state.js'
import { confirmLater } from './confirm-later.js'
import { EMPTY_MD5, joinRecord, validRecord } from './join-record.js'
import type { StoreParts } from './object-store.js'
import type { StoredObject } from './store.js'
import { confirmed } from './unconfirmed.js'

type FindParts = Pick<StoreParts, 'state'>

/**
 * The object as the gateway and its record show it; undefined when there is none.
 * @param through the gateway that is asked
 * @param by who gets the lines about it
 */
export async function findObject(
  parts: FindParts,
  by: Logging,
  through: Gateway,
  bucket: string,
  key: string,
): Promise<StoredObject | undefined> {
  const [object, record] = await Promise.all([through.stat(bucket, key), parts.state.objects.get(bucket, key)])
  if (!object) return findMarker(through, bucket, key, record)
  if (object.metadata || validRecord(object, record)) return joinRecord(bucket, object, record)
  const told = await withMetadata(through, bucket, object)
  return joinRecord(bucket, told, confirmRecord(parts, by, bucket, told, record))
}

/** Gives an unconfirmed record its stamp if the object comes from the write that the record describes. */
export function confirmRecord<R extends ObjectRecord | undefined>(
  parts: FindParts,
  by: Logging,
  bucket: string,
  object: GatewayObject,
  record: R,
): R {
  const known = confirmed(object, record)
  if (record && known !== record)
    void confirmLater(parts, by, bucket, object.key, record.stamp, Promise.resolve({ stamp: object.stamp }))
  return known
}

/**
 * Reads the metadata from a download, because a legacy gateway returns it nowhere else. Only objects stored without
 * this server have no record.
 */
export async function withMetadata(through: Gateway, bucket: string, object: GatewayObject): Promise<GatewayObject> {
  const download = await through.download(bucket, object.key)
  download.discard()
  return download.object
}

/** A legacy gateway does not show the object of a folder that has content: the record shows that one was stored. */
export async function findMarker(
  through: Gateway,
  bucket: string,
  key: string,
  record: ObjectRecord | undefined,
): Promise<StoredObject | undefined> {
  if (record?.stamp !== MARKER_STAMP || record.key !== key) return undefined
  const below = await through.list(bucket, { prefix: key, delimiter: '', after: '', limit: 1 })
  return below.entries.length === 0 ? undefined : joinRecord(bucket, markerObject(key), record)
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

/** The download of a folder object that `findMarker` has found. */
export function emptyDownload(key: string) {
  return {
    object: markerObject(key),
    first: 0,
    last: -1,
    consume: async () => {},
    lend: async () => {},
    discard: () => {},
  }
}
