import { type Context, S3Error, type StoredObject } from 'dealgate'

/**
 * The object to upload, which the caller may read.
 * @throws S3Error NoSuchKey, NoSuchBucket, AccessDenied, InvalidObjectState; PreconditionFailed when it was replaced
 */
export async function requireObject(
  context: Context,
  { bucket, key, stamp }: { readonly bucket: string; readonly key: string; readonly stamp?: string },
): Promise<StoredObject> {
  context.checks.requireKey(bucket, key, 'read')
  const object = await context.store.head(bucket, key)
  if (object.cold) throw new S3Error('InvalidObjectState', { message: 'The object has to be restored first.' })
  if (stamp !== undefined && object.stamp !== stamp)
    throw new S3Error('PreconditionFailed', { message: 'The object was replaced before it was uploaded.' })
  return object
}
