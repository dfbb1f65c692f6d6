import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { RestoreOrder, RestoreOutcome } from '../../registry/storage-class.js'
import type { S3Request } from '../../request/s3-request.js'
import { causeOf } from './cause.js'
import { presenceOf } from './presence.js'

/**
 * Has an object brought back by the plugin of its storage class, and tells that it was asked for. 200 when its bytes are here, now or until a new date; 202 when they
 * are on their way.
 * @throws S3Error NoSuchKey, AccessDenied, InvalidObjectState for an object that is in no archive class, RestoreAlreadyInProgress, NotImplemented, and what the plugin throws
 */
export async function restoreStored(
  context: Context,
  bucket: string,
  key: string,
  order: RestoreOrder,
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
): Promise<RestoreOutcome> {
  context.requireKey(bucket, key, 'write')
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
  if (state === 'archived') return { status: 200 }
  const offered = context.storageClasses.get(object.archive?.storageClass ?? storageClass)
  if (!offered?.restore) {
    throw new S3Error('NotImplemented', {
      message: `No plugin is loaded that brings objects of the storage class ${storageClass} back.`,
    })
  }
  const outcome = await offered.restore(object, order, context)
  if (outcome.status === 202) {
    const { size, etag } = object
    const cause = causeOf('ObjectRestore:Post', request, context)
    await context.hooks.objectMoved({ ...cause, bucket, key, size, etag, time: Date.now() })
  }
  return outcome
}
