import type { Context } from '../../../src/context.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import { requireBucket } from '../../../src/operations/common/buckets.js'
import type { StoredObject } from '../../../src/store/store.js'

/**
 * The object that a deal is to be made about. Throws NoSuchKey, NoSuchBucket, AccessDenied; PreconditionFailed when it is another than the one that is meant;
 * InvalidObjectState when the gateway has no copy of it to make a deal of, unless it may take the bytes from the deal that holds them; InvalidRequest for a key that must not be handed to this gateway's deals.
 */
export async function requireObject(
  context: Context,
  {
    bucket,
    key,
    stamp,
    etag,
  }: { readonly bucket: string; readonly key: string; readonly stamp?: string; readonly etag?: string },
  { mayBeCold = false } = {},
): Promise<StoredObject> {
  await refuseUnsafe(context, key)
  const object = await context.store.head(bucket, key)
  if ((stamp !== undefined && object.stamp !== stamp) || (etag !== undefined && object.etag !== etag))
    throw new S3Error('PreconditionFailed', {
      message: 'The object was replaced before its deal was made. The new one has no deal yet.',
    })
  if (object.cold && !mayBeCold)
    throw new S3Error('InvalidObjectState', {
      message: 'The gateway holds no copy of the object to make a deal of. Restore it first.',
    })
  return object
}

/** Throws NoSuchBucket, BucketEmpty, AccessDenied. */
export async function requireContent(context: Context, bucket: string): Promise<void> {
  context.requireWholeBucket(bucket, 'read')
  await requireBucket(context, bucket)
  const { entries } = await context.store.list(bucket, { prefix: '', delimiter: '', after: '', limit: 1 })
  if (entries.length === 0)
    throw new S3Error('BucketEmpty', {
      message: 'The bucket holds no object that a deal could be made of.',
      fields: { BucketName: bucket },
    })
}

/**
 * Public gateways, which know no client tokens, put the key of an object into the command line of a shell as it is (filswan/fs3 cmd/web-handlers.go): what a shell
 * would take for more than text is not sent there.
 */
export async function refuseUnsafe({ gateway }: Context, key: string): Promise<void> {
  if (/^[\p{L}\p{M}\p{N}/._\-+=@,:%]*$/u.test(key) || (await gateway.features()).dealTokens) return
  throw new S3Error('InvalidRequest', {
    message: 'This gateway can make deals only of objects whose keys are letters, digits and / . _ - + = @ , : %.',
    fields: { Key: key },
  })
}
