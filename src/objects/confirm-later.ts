import type { UploadResult } from '../gateway/gateway.js'
import type { StoreParts } from './create-store.js'

/**
 * Replaces the stamp of an unconfirmed record once the gateway shows the object. If this process ends before that, the
 * next request that looks at the object does it (`unconfirmed.ts`). Never rejects.
 * @param stamp the stamp of the unconfirmed record; a record with another stamp is left unchanged
 */
export async function confirmLater(
  { state, log }: Pick<StoreParts, 'state' | 'log'>,
  bucket: string,
  key: string,
  stamp: string,
  confirmed: Promise<Pick<UploadResult, 'stamp'> | undefined>,
): Promise<void> {
  const found = await confirmed
  if (!found) return
  try {
    await state.locks.withKey(bucket, key, async (lock) => {
      const record = await state.objects.get(bucket, key)
      if (record?.stamp !== stamp) return
      lock.ensure()
      await state.objects.set({ ...record, stamp: found.stamp })
    })
  } catch (err) {
    log.warn({ err, bucket }, 'could not confirm the record of an object yet')
  }
}
