import { S3Error } from '../../../common/errors/s3-error.js'
import { document, element } from '../../../common/xml/xml.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { xml } from '../../../response/reply.js'
import type { Context } from '../../../server/context.js'
import { describeAccess, isPublic, readPublicAccess } from '../../policy/public-access.js'
import { BLOCKS } from '../../policy/public-access-block.js'

export const getPublicAccessBlock = defineOperation({
  name: 'GetPublicAccessBlock',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetPublicAccessBlock.html',
  access: 'owner',
  action: 's3:GetBucketPublicAccessBlock',
  on: { method: 'GET', resource: 'bucket', query: ['publicAccessBlock'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const block = await context.settings.confirmed(request.bucket, 'publicAccessBlock')
    if (!block) throw new S3Error('NoSuchPublicAccessBlockConfiguration', { fields: { BucketName: request.bucket } })
    const told = {
      ...block,
      RestrictPublicBuckets: block.RestrictPublicBuckets && (await holds(context, request.bucket)),
    }
    return xml(document('PublicAccessBlockConfiguration', BLOCKS.map((name) => element(name, told[name])).join('')))
  },
})

/**
 * Returns false if another program has opened the bucket on the gateway since RestrictPublicBuckets was set here,
 * because the gateway then serves the bucket publicly.
 */
async function holds(context: Context, bucket: string): Promise<boolean> {
  const present = await readPublicAccess(context, bucket)
  if (!isPublic(present)) return true
  context.log.warn(
    { bucket, rules: describeAccess(present) },
    'a bucket with RestrictPublicBuckets is public by rules of the gateway; remove them with DeleteBucketPolicy',
  )
  return false
}
