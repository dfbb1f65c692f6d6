import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import { ownerId } from './owner.js'

/** The owner of the bucket, and that of the bucket a copy reads from: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html */
const HEADERS = ['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner']

/** Throws AccessDenied when the client expects another owner than the one that ListBuckets tells it. */
export function requireExpectedOwner({ headers }: Pick<S3Request, 'headers'>, context: Pick<Context, 'caller'>): void {
  for (const name of HEADERS) {
    if (headers[name] === undefined || headers[name] === ownerId(context)) continue
    throw new S3Error('AccessDenied', {
      message: `The bucket has another owner than ${name} says; its owner's id is the one that ListBuckets answers.`,
    })
  }
}
