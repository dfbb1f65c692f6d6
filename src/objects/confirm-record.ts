import type { Logging } from '../../common/log.js'
import type { GatewayObject, UploadResult } from '../api/gateway.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectRecord } from '../api/object-records.js'
import { confirmed } from './object-record.js'
import type { StoreDeps } from './store-deps.js'

// A record is unconfirmed while the gateway has not shown the object that it describes: it has no revision yet.

type ConfirmDeps = Pick<StoreDeps, 'state'>

/** Gives an unconfirmed record its revision if the object comes from the write that the record describes. */
export function confirmRecord<R extends ObjectRecord | undefined>(
  deps: ConfirmDeps,
  logger: Logging,
  bucket: string,
  object: GatewayObject,
  record: R,
): R {
  const known = confirmed(object, record)
  if (record && known !== record)
    void confirmLater(deps, logger, bucket, object.key, record.revision, Promise.resolve({ revision: object.revision }))
  return known
}

/**
 * Replaces the revision of an unconfirmed record once the gateway shows the object. If this process ends before that,
 * the next request that looks at the object does it. Never rejects.
 * @param revision the revision of the unconfirmed record; a record with another revision is left unchanged
 */
export async function confirmLater(
  { state }: ConfirmDeps,
  logger: Logging,
  bucket: string,
  key: string,
  revision: string,
  confirmed: Promise<Pick<UploadResult, 'revision'> | undefined>,
): Promise<void> {
  const found = await confirmed
  if (!found) return
  const { objects, locks } = state
  try {
    const run = async (lock: HeldLock) => {
      const record = await objects.get(bucket, key)
      if (record?.revision !== revision) return
      lock.ensure()
      await objects.set({ ...record, revision: found.revision }, lock)
    }
    await locks.withKey(bucket, key, run, { logger })
  } catch (err) {
    logger.log.warn({ err, bucket }, 'could not confirm the record of an object yet')
  }
}
