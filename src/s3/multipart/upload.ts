import { S3Error } from '../../../common/errors/s3-error.js'
import { requiredNumber } from '../../../common/query.js'
import type { Context } from '../../api/context.js'
import type { S3Request } from '../../api/request.js'
import type { PartRecord, UploadRecord } from '../../api/uploads.js'
import { canonicalId } from '../../auth/credentials.js'
import { allows } from '../../gateway/account/policies.js'
import { noContent } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { requireBucket } from '../bucket/owner.js'

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
  return upload
}

/**
 * Like `requireUpload`, for operations that need the parts. Throws ServiceUnavailable if another proxy on the same
 * state keeps the parts.
 */
async function requireUploadHere(request: S3Request<'object'>, context: Context): Promise<UploadRecord> {
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

/**
 * Throws NoSuchBucket, and AccessDenied when the caller's gateway account does not own the bucket and no rule of the
 * bucket allows others to write the key: the gateway would refuse the object at the end, after its parts have filled
 * the disk. A grant of the bucket's documents suffices, too. Rules that the server's own account may not read allow
 * nothing here. Resolves true if the caller's account owns the bucket.
 */
export async function requireMayWrite(context: Context, bucket: string, key: string): Promise<boolean> {
  if (context.authorizer.granted('s3:PutObject', bucket, key)) return false
  const refusal = await unlessDenied(context.checks.requireOwner(bucket))
  if (!(refusal instanceof S3Error)) return true
  const rules = await unlessDenied(context.own.listPolicies(bucket))
  if (rules instanceof S3Error || !allows(rules, 'put', key))
    throw new S3Error('AccessDenied', {
      message: 'This account neither owns the bucket nor may write this key by one of its rules.',
      cause: refusal,
    })
  return false
}

/**
 * True if the caller may see and end the uploads of all key pairs: the account of the caller owns the bucket, or a
 * document of the bucket grants the action. A key pair with rights may see and end its own alone.
 */
export async function managesUploads(context: Context, action: string, bucket: string, key?: string): Promise<boolean> {
  if (context.caller === undefined || context.caller.identity.rights) return false
  if (context.authorizer.granted(action, bucket, key)) return true
  return !((await unlessDenied(context.checks.requireOwner(bucket))) instanceof S3Error)
}

/** Returns AccessDenied in place of throwing it. */
function unlessDenied<T>(asked: Promise<T>): Promise<T | S3Error> {
  return asked.catch((error) => {
    if (error instanceof S3Error && error.code === 'AccessDenied') return error
    throw error
  })
}

const ABORT = 's3:AbortMultipartUpload'

export const abortMultipartUpload = defineOperation({
  name: 'AbortMultipartUpload',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html',
  access: 'signed',
  action: ABORT,
  keeps: 'uploads',
  on: { method: 'DELETE', resource: 'object', query: ['uploadId'] },
  async run(request, context) {
    const upload = await requireUpload(request, context, ABORT)
    // The lock waits for a completion in progress, which reads the parts.
    const run = async () => {
      await requireUpload(request, context, ABORT)
      await context.state.uploads.abort(upload.uploadId, context)
    }
    await context.state.locks.withName(`complete/${upload.uploadId}`, run, { logger: context })
    return noContent()
  },
})
