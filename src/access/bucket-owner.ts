import { S3Error } from '../../common/errors/s3-error.js'
import type { Context } from '../api/context.js'
import type { AnyOperation } from '../api/operation.js'
import type { S3Request } from '../api/request.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
import { copySourcePath } from '../http/addressing.js'

type OwnerContext = Pick<Context, 'caller' | 'authorizer' | 'checks' | 'own'>

/**
 * The headers in which a request states whom it expects to own the bucket, and the source bucket of a copy:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
 */
const HEADERS = ['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner'] as const

/** True for a request that `requireExpectedOwner` has to do with: nearly none. */
export function statesOwner({ headers }: Pick<S3Request, 'headers'>): boolean {
  return HEADERS.some((name) => headers[name] !== undefined)
}

/** Throws AccessDenied if a header of the request states another owner than that of the bucket which it is about. */
export async function requireExpectedOwner(
  { headers, bucket }: Pick<S3Request, 'headers' | 'bucket'>,
  context: OwnerContext,
): Promise<void> {
  for (const name of HEADERS) {
    const expected = headers[name]
    if (expected === undefined) continue
    const place = name === HEADERS[0] ? bucket : copySourceBucket(headers)
    if (place === undefined) throw otherOwner(name)
    await requireBucketOwner({ bucket: place, expected: String(expected), name }, context)
  }
}

/** The bucket of x-amz-copy-source; undefined if there is none. The operation checks the header itself. */
function copySourceBucket(headers: S3Request['headers']): string | undefined {
  const [bucket] = copySourcePath(String(headers['x-amz-copy-source'] ?? ''))?.path.split('/') ?? []
  return bucket || undefined
}

interface ExpectedOwner {
  readonly bucket: string
  /** A canonical id, as ListBuckets returns it. */
  readonly expected: string
  /** The header or element that states it. */
  readonly name: string
}

/**
 * Throws AccessDenied unless the bucket has the owner that a request or a document expects. The caller is no measure:
 * the bucket may be of another account that lets the caller in. The owner is the account that a document of the bucket
 * has on record, or else the account of the caller or of the server, if its own list of buckets names the bucket. Of
 * another bucket no owner is known, so that no guard holds. A bucket that does not exist is for its creator.
 */
export async function requireBucketOwner(
  { bucket, expected, name }: ExpectedOwner,
  context: OwnerContext,
): Promise<void> {
  const recorded = (await context.authorizer.documents(bucket))?.owner
  if (recorded !== undefined) {
    if (recorded === expected) return
    throw otherOwner(name)
  }
  const own = context.caller && canonicalId(context.caller.identity)
  // Nothing is asked of the gateway for an id that is of neither account.
  if (expected !== own && expected !== OWN_ID) throw otherOwner(name)
  const ofCaller = own !== undefined && (await isOwn(context, bucket))
  if (ofCaller ? expected === own : expected === OWN_ID && (await isOfServer(context, bucket))) return
  throw otherOwner(name)
}

/** True for an operation that changes data, of this server alone, of a bucket that the caller has to own. */
export function isForOwner(operation: AnyOperation): boolean {
  // A call that creates a job checks this itself: a repeated client token must return its job even if the bucket is
  // gone or the gateway is unreachable.
  return operation.access === 'owner' && operation.call?.job === undefined
}

/** True for a bucket of the caller's account, and for one that does not exist. */
async function isOwn({ checks }: OwnerContext, bucket: string): Promise<boolean> {
  try {
    await checks.requireOwner(bucket)
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchBucket') return true
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}

async function isOfServer({ own }: OwnerContext, bucket: string): Promise<boolean> {
  return (await own.listBuckets()).some(({ name }) => name === bucket)
}

function otherOwner(name: string): S3Error {
  return new S3Error('AccessDenied', {
    message: `The bucket has another owner than ${name} states; the id of its owner is the one that ListBuckets returns.`,
  })
}
