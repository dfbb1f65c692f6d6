import { canonicalId } from '../../auth/identities/canonical-id.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { requiredNumber } from '../../request/numbers.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import type { PartRecord, UploadRecord } from '../../state/state.js'
import { requireBucket } from '../vocabulary/buckets.js'
import { managesUploads, requireMayWrite } from './may-write.js'

export function accessKeyId(context: Context): string {
  return context.caller?.identity.accessKeyId ?? ''
}

/** Returns true if the request names this upload and the caller owns it. */
export function isOwn(
  upload: Pick<UploadRecord, 'bucket' | 'key' | 'accessKeyId'>,
  request: S3Request<'object'>,
  context: Context,
): boolean {
  return upload.bucket === request.bucket && upload.key === request.key && upload.accessKeyId === accessKeyId(context)
}

/** The error for an upload that the request names and that is not there, or not the caller's; NoSuchBucket first. */
export async function missingUpload(request: S3Request<'object'>, context: Context): Promise<S3Error> {
  await requireBucket(context, request.bucket)
  return noSuchUpload(request)
}

/** The error for an upload that the request names and that is not there, or not the caller's. */
export function noSuchUpload({ query }: S3Request<'object'>, cause?: unknown): S3Error {
  return new S3Error('NoSuchUpload', { cause, fields: { UploadId: (query.get('uploadId') ?? '').slice(0, 1024) } })
}

/**
 * Returns the upload of `uploadId`. Throws NoSuchUpload, also for an upload of another caller or key, and AccessDenied
 * if the caller may no longer write the key.
 * @param action by which others than its initiator may use the upload, if they manage the uploads of the bucket
 */
export async function requireUpload(
  request: S3Request<'object'>,
  context: Context,
  action?: string,
): Promise<UploadRecord> {
  const { bucket, key, query } = request
  const upload = await context.state.uploads.get(query.get('uploadId') ?? '')
  const isThere = upload !== undefined && upload.bucket === bucket && upload.key === key
  if (
    !isThere ||
    !(isOwn(upload, request, context) || (action && (await managesUploads(context, action, bucket, key))))
  )
    throw await missingUpload(request, context)
  context.checks.requireKey(upload.bucket, upload.key, 'write')
  return upload
}

/**
 * Like `requireUpload`, for operations that need the parts. Throws ServiceUnavailable if another proxy on the same
 * state keeps the parts.
 */
export async function requireUploadHere(request: S3Request<'object'>, context: Context): Promise<UploadRecord> {
  const upload = await requireUpload(request, context)
  await context.state.uploads.requireHere(upload)
  return upload
}

/**
 * Like `requireUploadHere`, for operations that add parts. Throws AccessDenied, too, for an account that does not own
 * the bucket and may no longer write the key: its parts would fill the disk. The account of the owner costs no call.
 */
export async function requireUploadToFill(request: S3Request<'object'>, context: Context): Promise<UploadRecord> {
  const upload = await requireUploadHere(request, context)
  const owns = context.caller !== undefined && upload.owner === canonicalId(context.caller.identity)
  if (!owns) await requireMayWrite(context, upload.bucket, upload.key)
  return upload
}

/** Throws InvalidArgument. */
export function readPartNumber(request: S3Request<'object'>, context: Context): number {
  const value = request.query.get('partNumber')
  return requiredNumber('partNumber', value ?? '', { min: 1, max: context.limits.maxParts })
}

/** Number of parts per page. */
const PAGE = 1000

/** Returns all parts of an upload, in order: at most limits.maxParts small records. */
export async function allParts(context: Context, uploadId: string): Promise<PartRecord[]> {
  const parts: PartRecord[] = []
  for (;;) {
    const page = await context.state.uploads.listParts(uploadId, parts.at(-1)?.partNumber ?? 0, PAGE, context)
    parts.push(...page)
    if (page.length < PAGE) return parts
  }
}
