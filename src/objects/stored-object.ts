import { createHash } from 'node:crypto'
import type { GatewayObject } from '../api/gateway.js'
import type { ObjectRecord } from '../api/object-records.js'
import type { StoredObject, StoreEntry } from '../api/store.js'
import { contentSize } from './encryption/opened-download.js'
import { recordOf, validRecord } from './object-record.js'

/** The object as S3 shows it: the gateway's object joined with the record, if the record is about these bytes. */
export function joinRecord(bucket: string, object: GatewayObject, record: ObjectRecord | undefined): StoredObject {
  const valid = recordOf(bucket, object, record)
  return {
    bucket,
    key: object.key,
    ...sizeOf(object, valid),
    etag: etagOf(bucket, object, valid),
    lastModified: object.lastModified,
    contentType: valid?.contentType ?? object.contentType,
    headers: valid?.headers ?? object.headers ?? {},
    metadata: valid?.metadata ?? object.metadata ?? {},
    checksum: valid?.checksum ?? object.checksum,
    partSizes: valid?.partSizes,
    tags: valid?.tags,
    ...(valid?.acl && { acl: valid.acl }),
    archive: valid?.archive,
    ...(valid?.label && { label: valid.label }),
    uploadId: uploadIdOf(valid),
    authorized: valid?.authorized,
    ...(valid?.mark === undefined ? {} : { mark: valid.mark }),
    cold: object.cold === true,
    revision: object.revision,
    ...(object.writeId === undefined ? {} : { writeId: object.writeId }),
    ...(object.record === undefined ? {} : { recordAtGateway: true }),
    ...(valid?.acl && !validRecord(object, record) ? { aclAtGateway: true } : {}),
    ...(object.versionId === undefined ? {} : { versionId: object.versionId }),
    ...(object.lock === undefined ? {} : { lock: object.lock }),
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
 * revision; its `-` tells clients that it is not an MD5. Listings, HEAD and GET return the same ETag, so that If-Match
 * works with a listed one.
 */
function etagOf(bucket: string, object: GatewayObject, valid: ObjectRecord | undefined): string {
  return (
    valid?.etag ??
    object.etag ??
    `${createHash('md5').update(`${bucket}/${object.key}\n${object.revision}`).digest('hex')}-1`
  )
}

/** The size of the content, and that of the stored bytes if they are others. */
function sizeOf(
  { size, encrypted: mark }: GatewayObject,
  record: ObjectRecord | undefined,
): Pick<StoredObject, 'size' | 'encrypted' | 'storedSize'> {
  const encrypted = mark ?? record?.encrypted
  if (!encrypted) return { size }
  // An object that was cut at the gateway has no content; reading it says so.
  return { size: contentSize({ size, encrypted }) ?? size, encrypted, storedSize: size }
}

export function toEntry(bucket: string, object: GatewayObject, record: ObjectRecord | undefined): StoreEntry {
  const { size, storedSize } = sizeOf(object, record)
  return {
    kind: 'object',
    key: object.key,
    size,
    ...(storedSize !== undefined && { storedSize }),
    etag: etagOf(bucket, object, record),
    lastModified: object.lastModified,
    checksum: record?.checksum ?? object.checksum,
    archive: record?.archive,
    label: record?.label,
    tags: record?.tags,
    cold: object.cold === true,
  }
}
