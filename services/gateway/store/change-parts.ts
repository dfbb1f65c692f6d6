import type { Clock } from '../../clock.js'
import type { StoredBody } from '../../store/bodies.js'
import { type TransactionOptions, together } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import type { Admission } from './admission.js'
import { type BucketRow, type Buckets, bucketLock, type LockedBucket } from './buckets.js'
import type { RemovedKeys } from './fences.js'
import type { Holds } from './holds.js'
import type { KeyRules } from './key-rules.js'
import type { KeyState, KeyStates } from './key-states.js'
import type { LateTables } from './late-orders.js'
import { keyLock } from './local-copies.js'
import type { ObjectLocks } from './object-locks.js'
import { type FreedBody, storedBodyOf } from './object-row.js'
import type { Quotas } from './quotas.js'
import type { Versions } from './versions.js'

/** The tables that a change of objects reads and writes. */
export type ChangeTables = Parameters<Holds['letGo']>[0] &
  LateTables & {
    readonly buckets: Buckets
    readonly keyStates: KeyStates
    readonly removed: RemovedKeys
    readonly quotas: Quotas
    readonly versions: Versions
    readonly locks: ObjectLocks
  }

/** What a change of objects asks besides the tables. */
export interface ChangeParts {
  readonly clock: Clock
  readonly rules: KeyRules
  readonly holds: Holds
  readonly admission: Admission
}

/** Bodies without an object, to be discarded once the change is committed. */
export type Stored = readonly StoredBody[]

/**
 * The locks of a change of these keys.
 * @param alone no other change of the bucket takes place at the same time
 */
export function locksOf(bucket: BucketRow, keys: readonly Buffer[], alone: boolean): TransactionOptions {
  const ofKeys = keys.map((key) => keyLock(bucket, key))
  const ofBucket = [bucketLock(bucket)]
  return alone ? { locks: [...ofKeys, ...ofBucket] } : { locks: ofKeys, shares: ofBucket }
}

/**
 * The bucket may have been deleted, and created again, while a body was arriving. Resolves with the bucket as the
 * transaction finds it. Throws GatewayError NoSuchBucket.
 */
export async function mustStillBe(
  { buckets }: ChangeTables,
  { id, name }: BucketRow,
  alone: boolean,
): Promise<LockedBucket> {
  const bucket = await buckets.lock(name, alone)
  if (bucket?.id !== id) throw new GatewayError('NoSuchBucket', { bucket: name })
  return bucket
}

/**
 * What decides about a write to the key, where one statement reads all of it; undefined elsewhere. Throws GatewayError
 * NoSuchBucket.
 */
export async function keyState(
  { keyStates }: ChangeTables,
  { id, name }: BucketRow,
  key: Buffer,
): Promise<KeyState | undefined> {
  if (keyStates.find === undefined) return undefined
  const state = await keyStates.find(name, key)
  if (state?.held.id !== id) throw new GatewayError('NoSuchBucket', { bucket: name })
  return state
}

/**
 * Locks what the decision about a write to the key relies on, in one statement or one round trip: the bucket as it is
 * now, the last write to the key, and the quotas of account and bucket. Throws GatewayError NoSuchBucket.
 */
export async function lockKey(
  { rules }: Pick<ChangeParts, 'rules'>,
  tables: ChangeTables,
  bucket: BucketRow,
  key: Buffer,
): Promise<KeyState> {
  const state = await keyState(tables, bucket, key)
  if (state !== undefined) return state
  const { objects, quotas } = tables
  const [held, present, quota] = await together([
    mustStillBe(tables, bucket, rules.concernOthers),
    objects.lastWrite(bucket.id, key),
    quotas.lock(bucket.owner),
  ])
  await quotas.lockIn(held)
  return { held, present, quota }
}

/** Releases bodies whose rows are gone. Resolves with those that no pending deal keeps. */
export async function letGo(
  { holds }: Pick<ChangeParts, 'holds'>,
  tables: ChangeTables,
  { id, held }: LockedBucket,
  freed: readonly FreedBody[],
): Promise<Stored> {
  const stored: StoredBody[] = []
  for (const one of freed) if (await holds.letGo(tables, id, one, held === 1)) stored.push(storedBodyOf(one))
  return stored
}
