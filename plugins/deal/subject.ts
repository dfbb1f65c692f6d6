import { type Context, S3Error, type StoredObject } from 'dealgate/plugin'
import { z } from 'zod'
import { statedTerms } from './terms/terms.js'

export type VersionRef = Parameters<Context['store']['head']>[2]

/** Query of the calls about an object, which may be about one of its versions. */
export const ofVersion = z.strictObject({
  versionId: z
    .string()
    .regex(/^(null|[0-9a-f]{32})$/)
    .optional()
    .describe('Id of a version of the object. Default: the current one.'),
})

export function refOf({ versionId }: z.output<typeof ofVersion>): VersionRef {
  return versionId === undefined ? undefined : { id: versionId }
}

/**
 * The object for a new deal. A gateway without a local copy of it retrieves the bytes from the deals that hold the
 * object, and verifies them.
 * @throws S3Error NoSuchKey, NoSuchBucket, AccessDenied; PreconditionFailed when the object was replaced;
 * InvalidRequest for a key that is unsafe with this gateway
 */
export async function requireObject(
  context: Context,
  {
    bucket,
    key,
    revision,
    etag,
  }: { readonly bucket: string; readonly key: string; readonly revision?: string; readonly etag?: string },
  ref?: VersionRef,
): Promise<StoredObject> {
  await refuseUnsafe(context, key)
  const version = revision === undefined ? undefined : await context.store.findRevision(bucket, key, revision)
  const object = version ?? (await context.store.head(bucket, key, ref))
  if ((revision !== undefined && object.revision !== revision) || (etag !== undefined && object.etag !== etag))
    throw replaced()
  return object
}

export function replaced(): S3Error {
  return new S3Error('PreconditionFailed', {
    message: 'The object was replaced before its deal was made. The new object has no deal yet.',
  })
}

/** Throws NoSuchBucket, BucketEmpty, AccessDenied. */
export async function requireContent(context: Context, bucket: string, prefix = ''): Promise<void> {
  context.checks.requireWholeBucket(bucket, 'read')
  await requireBucket(context, bucket)
  const { entries } = await context.store.list(bucket, { prefix, delimiter: '', after: '', limit: 1 })
  if (entries.length === 0)
    throw new S3Error('BucketEmpty', {
      message: 'The bucket holds no object that a deal could be made of.',
      fields: { BucketName: bucket },
    })
}

/**
 * Public gateways, which know no client tokens, insert the key of an object unescaped into a shell command (filswan/fs3
 * cmd/web-handlers.go): keys with shell metacharacters are not sent there. Throws InvalidRequest.
 */
export async function refuseUnsafe({ gateway }: Context, key: string): Promise<void> {
  if (/^[\p{L}\p{M}\p{N}/._\-+=@,:%]*$/u.test(key) || (await gateway.features()).dealTokens) return
  throw new S3Error('InvalidRequest', {
    message:
      'This gateway can make deals only for objects whose keys consist of letters, digits and / . _ - + = @ , : %.',
    fields: { Key: key },
  })
}

/** Throws NoSuchBucket. */
export async function requireBucket({ gateway }: Pick<Context, 'gateway'>, bucket: string): Promise<void> {
  if (!(await gateway.bucketExists(bucket))) throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
}

/** Access key of the gateway account that pays for what a caller asks for; '' for the server's own account. */
export function payingAccount(caller: Context['caller']): string {
  return caller?.identity.account?.accessKey ?? ''
}

export const SOURCE = 'docs/deals.md'

/** Body of the calls that make a deal. */
export const dealRequest = z.strictObject({
  ...statedTerms,
  Force: z
    .boolean()
    .optional()
    .describe(
      'Make another deal although the same one was requested within the last minute, or the gateway lists one that is not on record.',
    ),
})
