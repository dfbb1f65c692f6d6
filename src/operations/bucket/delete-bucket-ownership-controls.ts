import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { requireBucket } from '../common/buckets.js'

/** Without the setting ACLs would count, which they cannot here. */
export const deleteBucketOwnershipControls = defineOperation({
  name: 'DeleteBucketOwnershipControls',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketOwnershipControls.html',
  on: { method: 'DELETE', resource: 'bucket', query: ['ownershipControls'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    await requireBucket(context, request.bucket)
    throw new S3Error('NotImplemented', {
      message: 'Object ownership is always BucketOwnerEnforced here and cannot be removed: ACLs have no effect.',
    })
  },
})
