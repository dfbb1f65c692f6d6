import { S3Error } from '../../common/errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import { ownerId } from './owner.js'

/**
 * Headers with the expected owner of the bucket, and of the source bucket of a copy:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
 */
const HEADERS = ['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner']

/** Throws AccessDenied if the client expects another owner than the one that ListBuckets returns. */
export async function requireExpectedOwner(
  { headers, bucket }: Pick<S3Request, 'headers' | 'bucket'>,
  context: Pick<Context, 'caller' | 'door'>,
): Promise<void> {
  for (const name of HEADERS) {
    const expected = headers[name]
    if (expected === undefined || expected === ownerId(context)) continue
    const place = name === HEADERS[0] ? bucket : copySourceBucket(headers)
    if (place !== undefined && expected === (await context.door.documents(place))?.owner) continue
    throw new S3Error('AccessDenied', {
      message: `The bucket has another owner than ${name} states; the id of its owner is the one that ListBuckets returns.`,
    })
  }
}

/** The bucket of x-amz-copy-source; undefined if there is none. The operation checks the header itself. */
function copySourceBucket(headers: S3Request['headers']): string | undefined {
  return /^\/?([a-z0-9.-]+)\//.exec(String(headers['x-amz-copy-source'] ?? ''))?.[1]
}
