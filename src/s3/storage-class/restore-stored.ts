import { S3Error } from '../../common/errors/s3-error.js'
import type { RestoreOrder, RestoreOutcome } from '../../plugins/forms/storage-class.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import { causeOf } from '../vocabulary/cause.js'
import { presenceOf } from './presence.js'

/**
 * Restores an object by the plugin of its storage class, and emits ObjectRestore:Post. Status 200: its bytes are
 * readable, possibly until a new date; 202: the restore has started.
 * @throws S3Error NoSuchKey, AccessDenied, InvalidObjectState for an object that is not in an archive class,
 * RestoreAlreadyInProgress, NotImplemented, and errors of the plugin
 */
export async function restoreStored(
  context: Context,
  bucket: string,
  key: string,
  order: RestoreOrder,
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
): Promise<RestoreOutcome> {
  context.checks.requireKey(bucket, key, 'write')
  const object = await context.store.findToWrite(bucket, key)
  if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
  const { state, storageClass } = presenceOf(object, context.plugins.storageClasses)
  if (state === 'restoring') throw new S3Error('RestoreAlreadyInProgress')
  if (state === 'hot') {
    throw new S3Error('InvalidObjectState', {
      message: "Restore is not allowed for the object's current storage class",
      fields: { StorageClass: storageClass },
    })
  }
  if (state === 'archived') return { status: 200 }
  const offered = context.plugins.storageClasses.get(object.archive?.storageClass ?? storageClass)
  if (!offered?.restore) {
    throw new S3Error('NotImplemented', {
      message: `No loaded plugin can restore objects of the storage class ${storageClass}.`,
    })
  }
  const outcome = await offered.restore(object, order, context)
  if (outcome.status === 202) {
    const { size, etag } = object
    const cause = causeOf('ObjectRestore:Post', request, context)
    await context.plugins.hooks.objectMoved({ ...cause, bucket, key, size, etag, time: Date.now() })
  }
  return outcome
}
