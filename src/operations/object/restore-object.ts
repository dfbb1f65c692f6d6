import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { restoreStored } from '../common/restore-stored.js'
import { refuseVersion } from '../common/version.js'
import { readRestoreOrder } from './restore-order.js'

export const restoreObject = defineOperation({
  name: 'RestoreObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html',
  partly:
    'For objects in storage classes that plugins offer. Without Days the object stays restored. Queries (Type SELECT) are NotImplemented.',
  on: { method: 'POST', resource: 'object', query: ['restore'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const { bucket, key } = request
    context.requireKey(bucket, key, 'write')
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    const { status, headers } = await restoreStored(context, bucket, key, await readRestoreOrder(bytes), request)
    return empty(headers, status)
  },
})
