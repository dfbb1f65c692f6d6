import type { Logging } from '../../common/log.js'
import type { WriteOrder } from '../api/gateway.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectRecords } from '../api/object-records.js'
import type { Cause, Precondition } from '../api/store.js'
import type { RemovalResult, VersionRemoval } from '../api/versions.js'
import { keepFolders } from './folder-objects.js'
import type { ObjectReader } from './object-reader.js'
import { markerEvent, removeVersion } from './remove-version.js'
import { lockUntilOutcome, serializedWrite } from './serialized-write.js'
import type { StoreDeps } from './store-deps.js'

interface Removal {
  readonly bucket: string
  readonly key: string
  readonly cause: Cause
  readonly precondition: Precondition | undefined
}

/** See Store.remove. */
export async function removeObject(
  deps: StoreDeps,
  reader: ObjectReader,
  removal: Removal,
  version: VersionRemoval | undefined,
  logger: Logging,
): Promise<RemovalResult> {
  if (version && (await deps.gateway.features()).versions)
    return removeVersion(deps, reader, { ...removal, version }, logger)
  // A gateway that keeps one version of each object knows it as `null`.
  if (version && version.id !== 'null') return {}
  return lock(deps, reader, removal, logger)
}

/**
 * Takes the lock of the key, and of all keys below it where the gateway removes a name that ends in `/` with all that
 * lies below: promise 3. Keeps it until the outcome of the removal is known: promise 13.
 */
async function lock(deps: StoreDeps, reader: ObjectReader, removal: Removal, logger: Logging): Promise<RemovalResult> {
  const { gateway, limits } = deps
  const { locks } = deps.state
  const { bucket, key } = removal
  const below = key.endsWith('/') && !(await gateway.features()).exactRemove
  const options = { waitMs: limits.keyWaitMs, logger }
  type Run = (held: HeldLock) => Promise<RemovalResult | undefined>
  return lockUntilOutcome<RemovalResult>(
    (run: Run) => (below ? locks.withSubtree(bucket, key, run, options) : locks.withKey(bucket, key, run, options)),
    (held) => removeUnderLock(deps, reader, removal, held, logger),
    async () => {},
    logger,
  )
}

async function removeUnderLock(
  deps: StoreDeps,
  reader: ObjectReader,
  removal: Removal,
  held: HeldLock,
  logger: Logging,
): Promise<RemovalResult> {
  const { gateway } = deps
  const { bucket, key, precondition } = removal
  const look = () => reader.findToWrite(bucket, key)
  const send = (order: WriteOrder) => gateway.remove(bucket, key, order)
  const result = await serializedWrite(held, precondition, look, send, logger)
  await forget(deps, removal, result, held)
  if (!(await gateway.features()).exactRemove) await keepFolders(deps, bucket, key, held, logger)
  await announce(deps, removal, result)
  return result
}

/**
 * Removes the record of what is gone, in the order of the writes of its key: promise 17. Behind a delete marker the
 * version stays, except for one without an id, whose place the marker has.
 */
async function forget(
  { state }: StoreDeps,
  { bucket, key }: Removal,
  { versionId }: RemovalResult,
  held: HeldLock,
): Promise<void> {
  held.ensure()
  const isGone = versionId === 'null' && (await isOfNull(state.objects, bucket, key))
  if (versionId === undefined || isGone) await state.objects.delete(bucket, key, held)
}

/** Whether the record of the key is that of the version without an id. */
async function isOfNull(objects: ObjectRecords, bucket: string, key: string): Promise<boolean> {
  const { versionId = 'null' } = (await objects.get(bucket, key)) ?? {}
  return versionId === 'null'
}

/** Calls the hooks, which put what they do on record before the client has its answer. */
function announce({ hooks }: StoreDeps, { bucket, key, cause }: Removal, result: RemovalResult): Promise<void> {
  const { deleteMarker, versionId } = result
  const { origin } = cause
  const name = deleteMarker ? markerEvent(cause.name) : cause.name
  const event = { name, origin, bucket, key, time: Date.now() }
  return hooks.objectDeleted({ ...event, ...(versionId !== undefined && { versionId }) })
}
