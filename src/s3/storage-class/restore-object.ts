import { defineOperation } from '../../plugins/forms/operation.js'
import { refuseVersion } from '../../request/version.js'
import { empty } from '../../response/reply.js'
import { readRestoreOrder } from './restore-order.js'
import { restoreStored } from './restore-stored.js'

export const restoreObject = defineOperation({
  name: 'RestoreObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html',
  partly:
    'For objects in storage classes that plugins offer. Without Days the object stays restored. Queries (Type SELECT) are NotImplemented.',
  access: 'owner',
  action: 's3:RestoreObject',
  needs: { key: 'write' },
  on: { method: 'POST', resource: 'object', query: ['restore'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const { bucket, key } = request
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    const { status, headers } = await restoreStored(context, bucket, key, await readRestoreOrder(bytes), request)
    return empty(headers, status)
  },
})
