import type { RequireOwner } from '../api/access.js'
import type { Gateway, GatewayObject, UploadResult, WriteOrder } from '../api/gateway.js'
import type { Hooks } from '../api/hooks.js'
import type { Limits } from '../api/limits.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectRecord, State } from '../api/state.js'
import type { Precondition, StoredObject } from '../api/store.js'
import type { Logger, Logging } from '../common/log.js'
import type { Quota } from '../common/quota.js'
import { InDoubt, UNRESOLVED } from '../gateway/calls/in-doubt.js'
import { WriteRefused } from '../gateway/errors.js'
import { unconfirmedStamp } from '../gateway/object-facts.js'
import type { PartChecksumRecords } from './part-checksums.js'

/** Attempts at a write that the gateway refuses because of concurrent writes. */
const ATTEMPTS = 4

/**
 * Performs one write under the key's lock. Checks the condition, and makes the gateway check at its commit that the
 * object found is still there. Gateways without fences do not check this; there the lock alone serializes writes.
 * Throws S3Error.
 * @param look resolves with the present object; called only when there is a condition
 * @param logger who gets the lines about the write
 */
export async function serializedWrite<T>(
  lock: HeldLock,
  precondition: Precondition | undefined,
  look: () => Promise<StoredObject | undefined>,
  write: (order: WriteOrder, current: StoredObject | undefined) => Promise<T>,
  logger: Logging,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const current = precondition && (await look())
    precondition?.(current)
    lock.ensure()
    const expected = precondition && { expected: current?.stamp ?? null }
    try {
      return await write({ fence: lock.fence, ...expected, ensure: () => lock.ensure(), logger }, current)
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw error
      // The fence may be too low because a clock was set back. If a concurrent write caused the refusal, the lock is
      // lost or never excluded that write.
      if (error.last !== undefined) await lock.raise(error.last)
      if (attempt < ATTEMPTS && error.repeatable) continue
      precondition?.(await look())
      throw error
    }
  }
}

/**
 * Runs `write` under a lock. When its outcome is unknown, rejects immediately and keeps the lock until the outcome is
 * known.
 * @param take takes the lock
 * @param landed called under the lock when the write took effect after all
 */
export function lockUntilOutcome<T>(
  take: (run: (lock: HeldLock) => Promise<T | undefined>) => Promise<T | undefined>,
  write: (lock: HeldLock) => Promise<T>,
  landed: (result: UploadResult, lock: HeldLock) => Promise<unknown>,
  logger: Logging,
): Promise<T> {
  return new Promise((resolve, reject) => {
    take(async (lock) => {
      try {
        return await write(lock)
      } catch (error) {
        if (!(error instanceof InDoubt)) throw error
        reject(error)
        await awaitOutcome(error, lock, landed, logger)
        return undefined
      }
    }).then((value) => resolve(value as T), reject)
  })
}

async function awaitOutcome(
  doubt: InDoubt,
  lock: HeldLock,
  landed: (result: UploadResult, lock: HeldLock) => Promise<unknown>,
  logger: Logging,
): Promise<void> {
  const result = await doubt.outcome
  if (result === UNRESOLVED) lock.leave()
  if (result === UNRESOLVED || !result) return
  try {
    lock.ensure()
    await landed(result, lock)
  } catch (err) {
    logger.log.warn({ err }, 'could not store the record of an object whose upload was confirmed late')
  }
}

/**
 * Replaces the stamp of an unconfirmed record once the gateway shows the object. If this process ends before that, the
 * next request that looks at the object does it (`find-object.ts`). Never rejects.
 * @param stamp the stamp of the unconfirmed record; a record with another stamp is left unchanged
 * @param logger who gets the lines about it
 */
export async function confirmLater(
  { state }: Pick<StoreDeps, 'state'>,
  logger: Logging,
  bucket: string,
  key: string,
  stamp: string,
  confirmed: Promise<Pick<UploadResult, 'stamp'> | undefined>,
): Promise<void> {
  const found = await confirmed
  if (!found) return
  try {
    const run = async (lock: HeldLock) => {
      const record = await state.objects.get(bucket, key)
      if (record?.stamp !== stamp) return
      lock.ensure()
      await state.objects.set({ ...record, stamp: found.stamp }, lock)
    }
    await state.locks.withKey(bucket, key, run, { logger })
  } catch (err) {
    logger.log.warn({ err, bucket }, 'could not confirm the record of an object yet')
  }
}

/** True for a record that was stored while the gateway did not show the object: it lacks only the stamp. */
export function isUnconfirmed(record: ObjectRecord | undefined, { size }: Pick<GatewayObject, 'size'>): boolean {
  return record?.size === size && record.stamp.startsWith(unconfirmedStamp(''))
}

/**
 * The record with its stamp, once the gateway states that the object comes from the write that the record describes.
 */
export function confirmed<R extends ObjectRecord | undefined>(object: GatewayObject, record: R): R {
  if (!record || object.writeId === undefined || record.size !== object.size) return record
  return record.stamp === unconfirmedStamp(object.writeId) ? { ...record, stamp: object.stamp } : record
}

export interface StoreDeps {
  readonly gateway: Gateway
  /**
   * The gateway for lookups that precede a write or removal: a caller who may write an object need not be able to read
   * it.
   */
  readonly lookUps: Gateway
  /** Called before a change to data of an object that only this server keeps: no gateway call guards it. */
  readonly requireOwner: RequireOwner
  readonly state: State
  readonly limits: Limits
  /** For the lines of work that no request asked for. */
  readonly log: Logger
  readonly hooks: Hooks
  readonly partChecksums: PartChecksumRecords
  /** Quota for bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
}
