import { S3Error } from '../errors/s3-error.js'
import type { UploadRecord, Uploads } from './state.js'

/**
 * Ends the uploads to a bucket that has gone, as S3 does with a bucket that is deleted. Also one that is being completed: it cannot be any more, and fails as it would
 * if it came a moment later.
 * @param before ms since 1970: those begun later are of another bucket of that name
 */
export async function endUploads(
  uploads: Pick<Uploads, 'list' | 'abort'>,
  bucket: string,
  before: number,
): Promise<void> {
  for (const { uploadId, initiated } of await uploads.list(bucket)) {
    if (initiated > before) continue
    await uploads.abort(uploadId).catch((error) => {
      if (!(error instanceof S3Error && error.code === 'NoSuchUpload')) throw error
    })
  }
}

/** False for an upload to an earlier bucket of that name, where the gateway tells them apart. `birth` as BucketBirths tells it. */
export function isOfBucket(upload: Pick<UploadRecord, 'birth'>, birth: string | undefined): boolean {
  return upload.birth === undefined || birth === undefined || upload.birth === birth
}
