import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { checksumAlgorithms } from '../../common/checksums/checksums.js'
import type { MaybePromise } from '../../common/maybe-promise.js'
import type { ObjectAcl } from '../api/access.js'
import type { Gateway, GatewayObject } from '../api/gateway.js'
import type { KnownObject } from '../api/known-object.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectRecord, ObjectRecords } from '../api/object-records.js'
import type { StoredObject } from '../api/store.js'
import { WriteRefused } from '../gateway/errors.js'
import { MARKER_REVISION, unconfirmedRevision } from '../gateway/object-facts.js'

// This file decides which record describes an object. A gateway with `objectRecords` keeps a part of it, too, which
// comes with the object in the same moment; the record in the state follows.

/** Longest text, characters: nginx between takes 4 KiB for the whole head of an answer, and fails above that. */
const MAX_LENGTH = 2 * 1024

/** Attempts with higher fences, which a clock that was set back makes necessary. */
const MAX_ATTEMPTS = 4

/**
 * Anyone with the keys of the gateway account can have stored another text. Nothing in it spends money: not the
 * authorizations of the caller, nor the archive.
 */
const schema = z.object({
  tags: z.array(z.object({ key: z.string(), value: z.string() })).optional(),
  acl: z
    .object({
      owner: z.string(),
      grants: z.array(
        z.object({
          grantee: z.union([
            z.strictObject({ id: z.string() }),
            z.strictObject({ group: z.enum(['AllUsers', 'AuthenticatedUsers', 'LogDelivery']) }),
          ]),
          permission: z.enum(['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL']),
        }),
      ),
    })
    .optional(),
  label: z.string().optional(),
  checksum: z
    .object({
      algorithm: z.enum(checksumAlgorithms),
      value: z.string(),
      type: z.enum(['FULL_OBJECT', 'COMPOSITE']),
    })
    .optional(),
  partSizes: z.array(z.tuple([z.int().min(0), z.int().min(1)])).optional(),
})

type Shared = Pick<ObjectRecord, 'tags' | 'acl' | 'label' | 'checksum' | 'partSizes'>

/** The ACL that a change keeps. One that the state does not have opens no object by another change. */
export function aclToKeep({ acl, aclAtGateway }: Pick<StoredObject, 'acl' | 'aclAtGateway'>): ObjectAcl | undefined {
  return aclAtGateway && acl ? { owner: acl.owner, grants: [] } : acl
}

/** True where nothing in the record changes what a caller may do with the object or how it is selected. */
function isPlain({ tags, acl, label }: Shared): boolean {
  return !tags?.length && !acl && label === undefined
}

/**
 * Returns the text to keep at the gateway with a new object. Undefined for a plain record, which saves the gateway the
 * text of most objects; and where the text is too long, even without the sizes of the parts and the checksum.
 */
export function textOf(record: Shared): string | undefined {
  if (isPlain(record)) return undefined
  const { tags, acl, label, checksum, partSizes } = record
  return written({ tags, acl, label, checksum, partSizes }) ?? written({ tags, acl, label })
}

function written(shared: Shared): string | undefined {
  const text = JSON.stringify(shared).replace(
    /[\x7f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return text.length > MAX_LENGTH ? undefined : text
}

function parse(text: string): Shared | undefined {
  try {
    return schema.parse(JSON.parse(text)) as Shared
  } catch {
    return undefined
  }
}

/**
 * The record, if it describes exactly these bytes: an overwrite through the JSON-RPC interface gave the object another
 * revision.
 */
export function validRecord(object: GatewayObject, record: ObjectRecord | undefined): ObjectRecord | undefined {
  if (!record || record.key !== object.key) return undefined
  if (record.revision === MARKER_REVISION && object.key.endsWith('/') && object.size === 0) return record
  return record.revision === object.revision && record.size === object.size ? record : undefined
}

/** What identifies the object of a record in a download, if the gateway keeps a mark with it. */
export function knownOf(record: ObjectRecord | undefined): KnownObject | undefined {
  if (record?.mark === undefined) return undefined
  return { mark: record.mark, revision: record.revision, size: record.size }
}

/**
 * The record of these bytes: that of the state, or, where that has none yet or was restored from an older backup, the
 * part that the gateway keeps with the object.
 */
export function recordOf(
  bucket: string,
  object: GatewayObject,
  record: ObjectRecord | undefined,
): ObjectRecord | undefined {
  const valid = validRecord(object, record)
  if (object.record === undefined || (valid && (valid.fence ?? 0) >= (object.fence ?? 0))) return valid
  const shared = parse(object.record)
  if (!shared) return valid
  const { tags, acl, label } = shared
  // A later change replaces these three. The others never change.
  if (valid) return { ...valid, tags, acl, label }
  const { key, revision, size, etag, contentType, headers = {}, metadata = {}, encrypted } = object
  if (etag === undefined) return undefined
  return {
    bucket,
    key,
    revision,
    size,
    etag,
    contentType,
    headers,
    metadata,
    ...(encrypted && { encrypted }),
    ...shared,
  }
}

/**
 * The record by which access to the object is decided. Where the gateway has the later part, its tags and its owner
 * count, and of its grants those that the state has, too: what the state has lost, or does not have yet, opens nothing.
 */
export function decidingRecord(
  bucket: string,
  object: GatewayObject,
  record: ObjectRecord | undefined,
): ObjectRecord | undefined {
  const valid = validRecord(object, record)
  const known = recordOf(bucket, object, record)
  if (!known?.acl || known === valid) return known
  const { owner, grants } = known.acl
  const both = grants.filter((grant) => valid?.acl?.grants.some((other) => isDeepStrictEqual(grant, other)))
  return { ...known, acl: { owner, grants: both } }
}

/**
 * The record of an object. In a versioned bucket, the last one of the key may be that of another version.
 * @param last the last record of the key, read at the same time as the object, or earlier
 */
export function recordOfVersion(
  records: Pick<ObjectRecords, 'ofRevision'>,
  bucket: string,
  { key, revision, versionId }: GatewayObject,
  last: ObjectRecord | undefined,
): MaybePromise<ObjectRecord | undefined> {
  return versionId === undefined || last?.revision === revision ? last : records.ofRevision(bucket, key, revision)
}

/** True for a record that was stored while the gateway did not show the object: it lacks only the revision. */
export function isUnconfirmed(record: ObjectRecord | undefined, { size }: Pick<GatewayObject, 'size'>): boolean {
  return record?.size === size && record.revision.startsWith(unconfirmedRevision(''))
}

/**
 * The record with its revision, once the gateway states that the object comes from the write that the record describes.
 */
export function confirmed<R extends ObjectRecord | undefined>(object: GatewayObject, record: R): R {
  if (!record || object.writeId === undefined || record.size !== object.size) return record
  return record.revision === unconfirmedRevision(object.writeId) ? { ...record, revision: object.revision } : record
}

/**
 * True if the record is that of a later write than the object: the object was read before it was replaced. A version
 * has a record of its own.
 */
export function isOvertaken(object: GatewayObject, record: ObjectRecord | undefined): boolean {
  if (object.versionId !== undefined) return false
  if (record?.fence === undefined || object.fence === undefined || record.key !== object.key) return false
  return record.fence > object.fence && !validRecord(object, record)
}

/**
 * Replaces what the gateway keeps with an object, before the record of the state is written: a state that is lost later
 * leaves no earlier ACL or tags behind. Throws S3Error.
 */
export async function keepAtGateway(
  gateway: Pick<Gateway, 'keepRecord'>,
  record: ObjectRecord,
  lock: HeldLock,
): Promise<void> {
  const { bucket, key, revision } = record
  // Without a text, earlier tags of the state would count if the state is not written.
  const text = isPlain(record) ? '{}' : (textOf(record) ?? '')
  for (let attempt = 1; ; attempt++) {
    lock.ensure()
    try {
      return await gateway.keepRecord(bucket, key, { revision, record: text, fence: lock.fence })
    } catch (error) {
      if (!(error instanceof WriteRefused) || error.last === undefined || attempt >= MAX_ATTEMPTS) throw error
      await lock.raise(error.last)
    }
  }
}
