import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document, element } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** Every object belongs to the bucket's owner, and no ACL grants anything: the one setting there is. */
export const getBucketOwnershipControls = defineOperation({
  name: 'GetBucketOwnershipControls',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketOwnershipControls.html',
  partly: 'Always BucketOwnerEnforced.',
  on: { method: 'GET', resource: 'bucket', query: ['ownershipControls'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    return xml(document('OwnershipControls', `<Rule>${element('ObjectOwnership', 'BucketOwnerEnforced')}</Rule>`))
  },
})
