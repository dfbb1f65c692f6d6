import { S3Error } from '../../common/errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import { cannedAcl, grantsByRules, type PublicGrants, requireGranted, requireTrue } from './acl.js'
import { readAclDocument } from './acl-document.js'
import { refusePublicAcl } from './public-access-block.js'

/** Reads the ACL of PutBucketAcl or PutObjectAcl from the header or the body. */
export async function readAcl(request: S3Request, context: Context): Promise<PublicGrants> {
  const inHeader = cannedAcl(request.headers)
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  if (inHeader && bytes.length > 0) {
    throw new S3Error('InvalidRequest', { message: 'An ACL is given in x-amz-acl or in the body, not in both.' })
  }
  if (inHeader) return inHeader
  if (bytes.length > 0) return readAclDocument(bytes, context)
  throw new S3Error('MissingSecurityHeader', {
    message: 'An ACL is needed: in x-amz-acl, or in the body.',
    fields: { MissingHeaderName: 'x-amz-acl' },
  })
}

/** Accepts only an ACL that matches the present rights, so there is nothing to store. */
export async function applyAcl(
  context: Context,
  bucket: string,
  asked: PublicGrants,
  current: PublicGrants,
): Promise<void> {
  await refuseBlocked(context, bucket, asked)
  requireTrue(asked, current)
}

/**
 * Checks x-amz-acl of a write. `private` grants nothing, which is always true. The bucket policy must already grant
 * anything more.
 * @throws S3Error AccessControlListNotSupported, InvalidArgument, AccessDenied
 */
export async function requireAclTrue(
  request: Pick<S3Request<'object'>, 'headers' | 'bucket' | 'key'>,
  context: Context,
): Promise<void> {
  const asked = cannedAcl(request.headers)
  if (!asked?.READ && !asked?.WRITE) return
  await refuseBlocked(context, request.bucket, asked)
  requireGranted(asked, grantsByRules(await context.gateway.listPolicies(request.bucket), request.key))
}

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html#access-control-block-public-access-options
 */
async function refuseBlocked(context: Context, bucket: string, asked: PublicGrants): Promise<void> {
  if (asked.READ || asked.WRITE) await refusePublicAcl(context, bucket)
}
