import type { Logging } from '../../common/log.js'
import type { UploadResult, WriteOrder } from '../api/gateway.js'
import type { HeldLock } from '../api/locks.js'
import type { Precondition, StoredObject } from '../api/store.js'
import { InDoubt, UNRESOLVED } from '../gateway/calls/in-doubt.js'
import { WriteRefused } from '../gateway/errors.js'

/** Attempts at a write that the gateway refuses because of concurrent writes. */
const MAX_ATTEMPTS = 4

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
    const expected = precondition && { expected: current?.revision ?? null }
    try {
      return await write({ fence: lock.fence, ...expected, ensure: () => lock.ensure(), logger }, current)
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw error
      // The fence may be too low because a clock was set back. If a concurrent write caused the refusal, the lock is
      // lost or never excluded that write.
      if (error.last !== undefined) await lock.raise(error.last)
      if (attempt < MAX_ATTEMPTS && error.repeatable) continue
      precondition?.(await look())
      throw error
    }
  }
}

/**
 * Runs `write` under a lock. When its outcome is unknown, rejects immediately and keeps the lock until the outcome is
 * known.
 * @param take takes the lock
 * @param landed called when the write took effect after all, under the lock unless that is lost meanwhile
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
    await landed(result, lock)
  } catch (err) {
    logger.log.warn({ err }, 'could not store the record of an object whose upload was confirmed late')
  }
}
