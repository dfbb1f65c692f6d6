import { document, element } from '../../../common/xml/xml.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { xml } from '../../../response/reply.js'
import { requireBucket } from '../../vocabulary/buckets.js'

export const getBucketOwnershipControls = defineOperation({
  name: 'GetBucketOwnershipControls',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketOwnershipControls.html',
  access: 'signed',
  action: 's3:GetBucketOwnershipControls',
  on: { method: 'GET', resource: 'bucket', query: ['ownershipControls'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    const ownership = (await context.door.documents(request.bucket))?.ownership ?? 'BucketOwnerEnforced'
    return xml(document('OwnershipControls', `<Rule>${element('ObjectOwnership', ownership)}</Rule>`))
  },
})
