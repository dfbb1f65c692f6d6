import { S3Error } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import type { UploadRecord, Uploads } from '../state.js'

/**
 * Ends the uploads to a deleted bucket, as S3 does. Includes an upload that is being completed, which then fails as it
 * would a moment later.
 * @param before milliseconds since 1970: later uploads belong to another bucket of that name
 * @param by who gets the lines about it; absent for the server
 */
export async function endUploads(
  uploads: Pick<Uploads, 'list' | 'abort'>,
  bucket: string,
  before: number,
  by?: Logging,
): Promise<void> {
  for (const { uploadId, initiated } of await uploads.list(bucket)) {
    if (initiated > before) continue
    await uploads.abort(uploadId, by).catch((error) => {
      if (!(error instanceof S3Error && error.code === 'NoSuchUpload')) throw error
    })
  }
}

/**
 * False for an upload to an earlier bucket of that name, where the gateway distinguishes them. `birth` as in
 * BucketBirths.
 */
export function isOfBucket(upload: Pick<UploadRecord, 'birth'>, birth: string | undefined): boolean {
  return upload.birth === undefined || birth === undefined || upload.birth === birth
}
