import type { Database } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { type BucketRow, type Buckets, bucketLock } from './buckets.js'
import { keyLock } from './local-copies.js'
import { changeLock, type LockChange, type ObjectLocks } from './object-locks.js'
import type { Objects } from './objects.js'
import { openVersion, type VersionRef } from './version-reads.js'
import type { Versions } from './versions.js'

interface LockTables {
  readonly buckets: Buckets
  readonly objects: Objects
  readonly versions: Versions
  readonly locks: ObjectLocks
}

/**
 * Changes the lock of a version, in one transaction that is durable once the promise resolves. Throws GatewayError
 * NoLockConfiguration, NoSuchKey, NoSuchVersion, IsDeleteMarker, LockTooShort or RetainInPast.
 * @param ref absent: the current version
 * @param bypass the caller may shorten or end a retention in GOVERNANCE mode
 */
export async function setLock(
  db: Database<LockTables>,
  bucket: BucketRow,
  key: Buffer,
  ref: VersionRef | undefined,
  change: LockChange,
  bypass: boolean,
): Promise<void> {
  const work = async (tables: LockTables) => {
    const held = await tables.buckets.lock(bucket.name, false)
    if (held?.id !== bucket.id) throw new GatewayError('NoSuchBucket', { bucket: bucket.name })
    if (held.lockRule === null) throw new GatewayError('NoLockConfiguration')
    const { row } = await openVersion(tables, held, key, ref, { body: false, record: false })
    await changeLock(tables, row.generation, change, bypass)
  }
  await db.transaction(work, { takesRoom: true, locks: [keyLock(bucket, key)], shares: [bucketLock(bucket)] })
}
