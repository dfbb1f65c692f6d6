import { createHash } from 'node:crypto'
import type { GatewayObject } from '../gateway/gateway.js'
import { MARKER_STAMP } from '../gateway/object-facts.js'
import type { ObjectRecord } from '../state/state.js'
import type { StoredObject } from './store.js'

export const EMPTY_MD5 = 'd41d8cd98f00b204e9800998ecf8427e'

/**
 * The record, if it describes exactly these bytes: an overwrite through the JSON-RPC interface gave the object another
 * stamp.
 */
export function validRecord(object: GatewayObject, record: ObjectRecord | undefined): ObjectRecord | undefined {
  if (!record || record.key !== object.key) return undefined
  if (record.stamp === MARKER_STAMP && object.key.endsWith('/') && object.size === 0) return record
  return record.stamp === object.stamp && record.size === object.size ? record : undefined
}

/** The object as S3 shows it: the gateway's object joined with the record, if the record is about these bytes. */
export function joinRecord(bucket: string, object: GatewayObject, record: ObjectRecord | undefined): StoredObject {
  const valid = validRecord(object, record)
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
