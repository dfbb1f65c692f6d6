import { S3Error, unless } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import type { WriteOrder } from '../api/gateway.js'
import type { ObjectEventName } from '../api/hooks.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectRecords } from '../api/object-records.js'
import type { Cause, Precondition, Store, StoredObject } from '../api/store.js'
import type { Uploads } from '../api/uploads.js'
import type { RemovalResult, VersionRemoval } from '../api/versions.js'
import { WriteRefused } from '../gateway/errors.js'
import { writeIdOf } from '../state/uploads/uploads.js'
import { serializedWrite } from './serialized-write.js'
import type { StoreDeps } from './store-deps.js'

interface Removal {
  readonly bucket: string
  readonly key: string
  readonly cause: Cause
  readonly precondition: Precondition | undefined
  readonly version: VersionRemoval
}

/**
 * Removes one version of an object for good, and its record. See Store.remove. The gateway is asked for the version
 * first: its record goes by its revision.
 */
export function removeVersion(
  { gateway, state, hooks, limits }: Pick<StoreDeps, 'gateway' | 'state' | 'hooks' | 'limits'>,
  store: Pick<Store, 'findToWrite'>,
  { bucket, key, cause, precondition, version }: Removal,
  logger: Logging,
): Promise<RemovalResult> {
  const run = async (lock: HeldLock): Promise<RemovalResult> => {
    const object = await found(store, bucket, key, version)
    precondition?.(object)
    if (version.noncurrent && object && (await store.findToWrite(bucket, key))?.revision === object.revision)
      throw new S3Error('PreconditionFailed', { message: 'The version is the current one of its key.' })
    if (object?.uploadId !== undefined) await settleUpload(state.uploads, object.uploadId, object)
    const send = (order: WriteOrder) => gateway.remove(bucket, key, order, version)
    const result = await serializedWrite(lock, undefined, async () => object, send, logger).catch((error) => {
      throw version.only && error instanceof WriteRefused && error.last === undefined
        ? new S3Error('PreconditionFailed')
        : error
    })
    lock.ensure()
    const uncovers = object
      ? await state.objects.deleteVersion(bucket, key, object.revision, lock)
      : result.deleteMarker
    if (uncovers) await restoreRecord(state.objects, await store.findToWrite(bucket, key), lock)
    const { name, origin } = cause
    const event = { name, origin, bucket, key, time: Date.now(), versionId: version.id }
    await hooks.objectDeleted({ ...event, ...(object && { revision: object.revision }) })
    return result
  }
  return state.locks.withKey(bucket, key, run, { waitMs: limits.keyWaitMs, logger })
}

/** A client that repeats its completion of the upload does not bring the version back. */
async function settleUpload(
  uploads: Pick<Uploads, 'attempt'>,
  uploadId: string,
  { writeId, versionId }: StoredObject,
): Promise<void> {
  try {
    await uploads.attempt(uploadId, (attempts) => {
      const made = attempts.find(({ request }) => writeIdOf({ uploadId }, request) === writeId)
      if (!made) return attempts
      const landed = { ...made, landed: true as const, ...(versionId !== undefined && { versionId }) }
      return attempts.map((one) => (one === made ? landed : one))
    })
  } catch (error) {
    // It was completed, and is forgotten.
    if (!(error instanceof S3Error) || error.code !== 'NoSuchUpload') throw error
  }
}

/** Makes the record of the version that is current now that of the key, by which access is decided. */
async function restoreRecord(objects: ObjectRecords, current: StoredObject | undefined, lock: HeldLock): Promise<void> {
  if (!current) return
  const { bucket, key, revision } = current
  const record = await objects.ofRevision(bucket, key, revision)
  if (record && (await objects.get(bucket, key))?.revision !== revision) await objects.setNewest(record, lock)
}

/** Undefined for a delete marker, and for a version that is gone. */
function found(
  store: Pick<Store, 'findToWrite'>,
  bucket: string,
  key: string,
  { id }: VersionRemoval,
): Promise<StoredObject | undefined> {
  return unless(['NoSuchVersion', 'MethodNotAllowed'], store.findToWrite(bucket, key, { id }), undefined)
}

export function markerEvent(name: ObjectEventName): ObjectEventName {
  if (name === 'ObjectRemoved:Delete') return 'ObjectRemoved:DeleteMarkerCreated'
  return name === 'LifecycleExpiration:Delete' ? 'LifecycleExpiration:DeleteMarkerCreated' : name
}
