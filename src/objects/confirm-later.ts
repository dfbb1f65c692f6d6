import type { Logging } from '../common/log.js'
import type { UploadResult } from '../gateway/gateway.js'
import type { HeldLock } from '../state/state.js'
import type { StoreParts } from './object-store.js'

/**
 * Replaces the stamp of an unconfirmed record once the gateway shows the object. If this process ends before that, the
 * next request that looks at the object does it (`unconfirmed.ts`). Never rejects.
 * @param stamp the stamp of the unconfirmed record; a record with another stamp is left unchanged
 * @param by who gets the lines about it
 */
export async function confirmLater(
  { state }: Pick<StoreParts, 'state'>,
  by: Logging,
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
    await state.locks.withKey(bucket, key, run, { by })
  } catch (err) {
    by.log.warn({ err, bucket }, 'could not confirm the record of an object yet')
  }
}
