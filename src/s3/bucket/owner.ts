import type { Context } from '../../api/context.js'
import type { S3Request } from '../../api/request.js'
import type { UploadRecord } from '../../api/state.js'
import { canonicalId, idOf, OWN_ID } from '../../auth/identities/credentials.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { element } from '../../common/xml.js'

/**
 * Returns the canonical user id of the owner of the caller's buckets, in AWS's form (64 hex digits): one per gateway
 * account, shared by all its key pairs. It is stable and reveals no secret.
 */
export function ownerId(context: Pick<Context, 'caller'>): string {
  return context.caller ? canonicalId(context.caller.identity) : OWN_ID
}

export function ownerElement(context: Pick<Context, 'caller' | 'server'>): string {
  const id = ownerId(context)
  return person('Owner', id, context.server.accountName(id))
}

/** Returns the initiator of a multipart upload, which is the key pair. */
export function initiatorElement({ accessKeyId }: Pick<UploadRecord, 'accessKeyId'>): string {
  return person('Initiator', idOf(accessKeyId || 'anonymous'), accessKeyId || 'anonymous')
}

function names(id: string, displayName: string | undefined): string {
  return element('ID', id) + element('DisplayName', displayName)
}

function person(name: string, id: string, displayName: string | undefined): string {
  return `<${name}>${names(id, displayName)}</${name}>`
}

/**
 * Headers with the expected owner of the bucket, and of the source bucket of a copy:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
 */
const HEADERS = ['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner']

/** Throws AccessDenied if the client expects another owner than the one that ListBuckets returns. */
export async function requireExpectedOwner(
  { headers, bucket }: Pick<S3Request, 'headers' | 'bucket'>,
  context: Pick<Context, 'caller' | 'authorizer'>,
): Promise<void> {
  for (const name of HEADERS) {
    const expected = headers[name]
    if (expected === undefined || expected === ownerId(context)) continue
    const place = name === HEADERS[0] ? bucket : copySourceBucket(headers)
    if (place !== undefined && expected === (await context.authorizer.documents(place))?.owner) continue
    throw new S3Error('AccessDenied', {
      message: `The bucket has another owner than ${name} states; the id of its owner is the one that ListBuckets returns.`,
    })
  }
}

/** The bucket of x-amz-copy-source; undefined if there is none. The operation checks the header itself. */
function copySourceBucket(headers: S3Request['headers']): string | undefined {
  return /^\/?([a-z0-9.-]+)\//.exec(String(headers['x-amz-copy-source'] ?? ''))?.[1]
}

/** Throws NoSuchBucket. */
export async function requireBucket(context: Context, bucket: string): Promise<void> {
  if (!(await context.gateway.bucketExists(bucket)))
    throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html. Throws InvalidBucketName. */
export function requireBucketName(bucket: string): void {
  const legal =
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) &&
    !/\.\.|\.-|-\./.test(bucket) &&
    !/^\d+\.\d+\.\d+\.\d+$/.test(bucket)
  if (legal) return
  throw new S3Error('InvalidBucketName', {
    message:
      'A bucket name has 3 to 63 lower-case letters, digits, dots and hyphens, begins and ends with a letter or digit, and is not an IP address.',
    fields: { BucketName: bucket },
  })
}
