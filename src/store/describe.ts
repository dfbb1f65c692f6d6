import { createHash } from 'node:crypto'
import type { GatewayObject } from '../gateway/gateway.js'
import type { ObjectRecord } from '../state/state.js'
import type { StoredObject } from './store.js'

/** Stamp of a folder marker on a gateway that keeps none once the folder has content; see gateway/gateway.ts. */
export const MARKER_STAMP = 'marker'
export const EMPTY_MD5 = 'd41d8cd98f00b204e9800998ecf8427e'

/** The record, if it is about exactly these bytes: whoever overwrote the object through the JSON-RPC gave it another stamp. */
export function validRecord(object: GatewayObject, record: ObjectRecord | undefined): ObjectRecord | undefined {
  if (!record || record.key !== object.key) return undefined
  if (record.stamp === MARKER_STAMP && object.key.endsWith('/') && object.size === 0) return record
  return record.stamp === object.stamp && record.size === object.size ? record : undefined
}

export function describe(bucket: string, object: GatewayObject, record: ObjectRecord | undefined): StoredObject {
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
    archive: valid?.archive,
    uploadId: uploadIdOf(valid),
    cold: object.cold === true,
    stamp: valid?.stamp ?? object.stamp,
  }
}

/** Earlier versions kept it with what they said of the archive: an upload that one of them stored and could not finish must not be stored again. */
function uploadIdOf(valid: (ObjectRecord & { readonly archive?: { readonly uploadId?: string } }) | undefined) {
  return valid?.uploadId ?? valid?.archive?.uploadId
}

/**
 * ETag of an object. Where neither record nor gateway gives one that can be trusted it is made from what identifies these bytes; its `-` tells clients
 * that it is not an MD5. The same in listings, HEAD and GET, so that If-Match with a listed ETag holds.
 */
export function etagOf(bucket: string, object: GatewayObject, valid: ObjectRecord | undefined): string {
  return (
    valid?.etag ??
    object.etag ??
    `${createHash('md5').update(`${bucket}/${object.key}\n${object.stamp}`).digest('hex')}-1`
  )
}
