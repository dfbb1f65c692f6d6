import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { causeOf } from '../common/cause.js'
import { presenceOf } from '../common/presence.js'
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
    const order = await readRestoreOrder((await request.body.collect(context.limits.maxDocumentBytes)).bytes)
    const object = await context.store.findToWrite(bucket, key)
    if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
    const { state, storageClass } = presenceOf(object, context.storageClasses)
    if (state === 'restoring') throw new S3Error('RestoreAlreadyInProgress')
    if (state === 'hot') {
      throw new S3Error('InvalidObjectState', {
        message: "Restore is not allowed for the object's current storage class",
        fields: { StorageClass: storageClass },
      })
    }
    if (state === 'archived') return empty()
    const offered = context.storageClasses.get(object.archive?.storageClass ?? storageClass)
    if (!offered?.restore) {
      throw new S3Error('NotImplemented', {
        message: `No plugin is loaded that brings objects of the storage class ${storageClass} back.`,
      })
    }
    const { status, headers } = await offered.restore(object, order, context)
    const { size, etag } = object
    if (status === 202) {
      const cause = causeOf('ObjectRestore:Post', request, context)
      await context.hooks.objectMoved({ ...cause, bucket, key, size, etag, time: Date.now() })
    }
    return empty(headers, status)
  },
})
