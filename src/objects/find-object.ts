import { createHash } from 'node:crypto'
import type { Gateway, GatewayObject } from '../api/gateway.js'
import type { ObjectRecord } from '../api/state.js'
import type { StoredObject } from '../api/store.js'
import type { Logging } from '../common/log.js'
import { MARKER_STAMP } from '../gateway/object-facts.js'
import { isOvertaken, recordOf, validRecord } from './object-record.js'
import { confirmed, confirmLater, type StoreDeps } from './serialized-write.js'

type FindDeps = Pick<StoreDeps, 'state'>

/** Most looks at an object that is replaced meanwhile. */
export const LOOKS = 3

/**
 * The object as the gateway and its record show it; undefined when there is none.
 * @param through the gateway that is asked
 * @param logger who gets the lines about it
 */
export async function findObject(
  deps: FindDeps,
  logger: Logging,
  through: Gateway,
  bucket: string,
  key: string,
): Promise<StoredObject | undefined> {
  for (let attempt = 1; ; attempt++) {
    const [object, record] = await Promise.all([through.stat(bucket, key), deps.state.objects.get(bucket, key)])
    if (!object) return findMarker(through, bucket, key, record)
    if (attempt < LOOKS && isOvertaken(object, record)) continue
    if (object.metadata || validRecord(object, record)) return joinRecord(bucket, object, record)
    const reported = await withMetadata(through, bucket, object)
    return joinRecord(bucket, reported, confirmRecord(deps, logger, bucket, reported, record))
  }
}

/** Gives an unconfirmed record its stamp if the object comes from the write that the record describes. */
export function confirmRecord<R extends ObjectRecord | undefined>(
  deps: FindDeps,
  logger: Logging,
  bucket: string,
  object: GatewayObject,
  record: R,
): R {
  const known = confirmed(object, record)
  if (record && known !== record)
    void confirmLater(deps, logger, bucket, object.key, record.stamp, Promise.resolve({ stamp: object.stamp }))
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

const EMPTY_MD5 = 'd41d8cd98f00b204e9800998ecf8427e'

/** The object as S3 shows it: the gateway's object joined with the record, if the record is about these bytes. */
export function joinRecord(bucket: string, object: GatewayObject, record: ObjectRecord | undefined): StoredObject {
  const valid = recordOf(bucket, object, record)
  return {
    bucket,
    key: object.key,
    size: object.size,
    etag: etagOf(bucket, object, valid),
    lastModified: object.lastModified,
    contentType: valid?.contentType ?? object.contentType,
    headers: valid?.headers ?? object.headers ?? {},
    metadata: valid?.metadata ?? object.metadata ?? {},
    checksum: valid?.checksum,
    partSizes: valid?.partSizes,
    tags: valid?.tags,
    ...(valid?.acl && { acl: valid.acl }),
    archive: valid?.archive,
    ...(valid?.label && { label: valid.label }),
    uploadId: uploadIdOf(valid),
    authorized: valid?.authorized,
    cold: object.cold === true,
    stamp: object.stamp,
    ...(object.writeId === undefined ? {} : { writeId: object.writeId }),
    ...(object.record === undefined ? {} : { recordAtGateway: true }),
    ...(valid?.acl && !validRecord(object, record) ? { aclAtGateway: true } : {}),
  }
}

/**
 * Earlier versions stored the upload id within the archive entry. It prevents an upload that an earlier version stored
 * but could not finish from being stored again.
 */
function uploadIdOf(valid: (ObjectRecord & { readonly archive?: { readonly uploadId?: string } }) | undefined) {
  return valid?.uploadId ?? valid?.archive?.uploadId
}

/**
 * The ETag of an object. Where neither record nor gateway has a trustworthy one, it is derived from bucket, key and
 * stamp; its `-` tells clients that it is not an MD5. Listings, HEAD and GET return the same ETag, so that If-Match
 * works with a listed one.
 */
export function etagOf(bucket: string, object: GatewayObject, valid: ObjectRecord | undefined): string {
  return (
    valid?.etag ??
    object.etag ??
    `${createHash('md5').update(`${bucket}/${object.key}\n${object.stamp}`).digest('hex')}-1`
  )
}
