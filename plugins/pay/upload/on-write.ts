import { createHash } from 'node:crypto'
import { type ObjectEvent, S3Error } from 'dealgate'
import type { PayParts } from '../parts.js'
import { UPLOAD, type UploadInput, uploadRequest } from './input.js'
import { tellObject } from './tell-object.js'

/** Name of the metadata, which is sent as x-amz-meta-pay-duration. */
export const DURATION_METADATA = 'pay-duration'

/**
 * Uploads an object that was stored with `x-amz-meta-pay-duration`, by a caller who may upload it: the metadata counts
 * for that caller alone. Each stored object is uploaded once, whatever copies say.
 */
export async function uploadWritten(parts: PayParts, event: ObjectEvent): Promise<void> {
  const { name, bucket, key, authorized, origin } = event
  // Nearly every write: the object itself is not looked up.
  if (!name.startsWith('ObjectCreated:') || !authorized?.[DURATION_METADATA]) return
  const { own, log } = parts.host
  const object = await own.store.find(bucket, key)
  const text = object?.metadata[DURATION_METADATA]
  const by = object?.authorized?.[DURATION_METADATA]
  if (!object || text === undefined || by === undefined) return
  const terms = uploadRequest.safeParse({ DurationDays: /^\d{1,6}$/.test(text) ? Number(text) : text })
  if (!terms.success) {
    log.warn(
      { requestId: origin.requestId, bucket, key },
      'x-amz-meta-pay-duration is no number of days: the object is not uploaded',
    )
    await tellObject(own, own, object, { 'pay-job': 'x-amz-meta-pay-duration must be a number of days' })
    return
  }
  const input: UploadInput = { bucket, key, stamp: object.stamp, days: terms.data.DurationDays, fileType: '0' }
  const written = createHash('sha256')
    .update(JSON.stringify([bucket, key, object.stamp]))
    .digest('hex')
  const { id } = await own.jobs.create({
    kind: UPLOAD,
    resource: `/${bucket}/${key}`,
    input,
    accessKeyId: by.accessKeyId,
    // The same object is uploaded once, also if a change of its metadata is told as another write.
    token: `${DURATION_METADATA}-${written.slice(0, 32)}`,
    requestHash: written,
  })
  try {
    await tellObject(own, own, object, { 'pay-job': id })
  } catch (err) {
    if (!(err instanceof S3Error)) throw err
    log.warn({ err, requestId: origin.requestId, bucket, key }, 'the object of an upload does not show its job')
  }
}
