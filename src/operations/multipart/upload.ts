import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import type { PartRecord, UploadRecord } from '../../state/state.js'
import { wholeNumber } from '../common/numbers.js'

export function accessKeyId(context: Context): string {
  return context.caller?.identity.accessKeyId ?? ''
}

/** True when the upload is the one that the request names, and the caller's own. */
export function isOwn(
  upload: Pick<UploadRecord, 'bucket' | 'key' | 'accessKeyId'>,
  request: S3Request<'object'>,
  context: Context,
): boolean {
  return upload.bucket === request.bucket && upload.key === request.key && upload.accessKeyId === accessKeyId(context)
}

/** The upload of `uploadId`. Throws NoSuchUpload, also for somebody else's or another key's, and AccessDenied when the caller's right to write the key is gone. */
export async function requireUpload(request: S3Request<'object'>, context: Context): Promise<UploadRecord> {
  const upload = await context.state.uploads.get(request.query.get('uploadId') ?? '')
  if (!upload || !isOwn(upload, request, context)) throw new S3Error('NoSuchUpload')
  context.requireKey(upload.bucket, upload.key, 'write')
  return upload
}

/** Throws InvalidArgument. */
export function readPartNumber(request: S3Request<'object'>, context: Context): number {
  const value = request.query.get('partNumber')
  if (value === undefined || value === '') {
    throw new S3Error('InvalidArgument', {
      message: 'This operation needs a partNumber.',
      fields: { ArgumentName: 'partNumber' },
    })
  }
  return wholeNumber('partNumber', value, 1, 1, context.limits.maxParts)
}

/** Parts read at once. */
const PAGE = 1000

/** All parts of an upload, in order: at most limits.maxParts small records. */
export async function allParts(context: Context, uploadId: string): Promise<PartRecord[]> {
  const parts: PartRecord[] = []
  for (;;) {
    const page = await context.state.uploads.listParts(uploadId, parts.at(-1)?.partNumber ?? 0, PAGE)
    parts.push(...page)
    if (page.length < PAGE) return parts
  }
}
