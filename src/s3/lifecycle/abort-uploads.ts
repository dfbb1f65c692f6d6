import type { UploadRecord } from '../../state/state.js'
import type { PassParts, Tally } from './bucket-pass.js'
import type { LifecycleConfiguration } from './configuration.js'
import { dueAfter } from './rules.js'

/**
 * Aborts the multipart uploads that have expired by the bucket's rules. Parts that another proxy staged are removed by
 * that proxy's sweep.
 */
export async function abortUploads(
  parts: PassParts,
  bucket: string,
  { rules }: LifecycleConfiguration,
  tally: Tally,
): Promise<void> {
  const aborting = rules.filter(({ enabled, abortDays }) => enabled && abortDays !== undefined)
  if (aborting.length === 0) return
  const due = ({ key, initiated }: UploadRecord) =>
    aborting.some(
      ({ filter, abortDays = Number.POSITIVE_INFINITY }) =>
        key.startsWith(filter.prefix ?? '') && dueAfter(initiated, abortDays) <= parts.now(),
    )
  const given = (await parts.state.uploads.list(bucket)).filter(due)
  if (given.length === 0 || !(await parts.isMeant())) return
  for (const upload of given) {
    if (await parts.ended()) return
    try {
      if (await abort(parts, upload.uploadId)) tally.aborted++
    } catch (err) {
      tally.failed++
      parts.log.warn({ err, bucket, uploadId: upload.uploadId }, 'could not abort an upload by a lifecycle rule')
    }
  }
}

/** Aborts an upload under the lock of CompleteMultipartUpload, so that an upload that is being completed is kept. */
function abort({ state }: PassParts, uploadId: string): Promise<boolean> {
  return state.locks.withName(`complete/${uploadId}`, async () => {
    if (!(await state.uploads.get(uploadId))) return false
    await state.uploads.abort(uploadId)
    return true
  })
}
