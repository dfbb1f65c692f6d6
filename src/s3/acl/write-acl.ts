import { type Acl, isPublicAcl } from '../../access/decision/acl.js'
import { givesMore } from '../../access/door/asked-by.js'
import { ANONYMOUS_ID, canonicalId } from '../../auth/identities/canonical-id.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import { requireAclTrue } from '../policy/apply-acl.js'
import { refusePublicAcl } from '../policy/public-access-block.js'
import { ACL_HEADERS, aclOfHeaders } from './acl-headers.js'

/**
 * Returns the ACL to store with a new object; undefined for an object that belongs to the owner of the bucket alone.
 * Where ACLs are disabled, an ACL must say what is the case anyway.
 * @throws S3Error InvalidArgument, AccessDenied, AccessControlListNotSupported, NotImplemented
 */
export async function aclOfWrite(
  request: Pick<S3Request<'object'>, 'headers' | 'bucket' | 'key'>,
  context: Context,
): Promise<Acl | undefined> {
  const documents = await context.door.documents(request.bucket)
  if (!documents || documents.ownership === 'BucketOwnerEnforced') {
    refuseGrants(request.headers)
    await requireAclTrue(request, context)
    return undefined
  }
  const writer = context.caller ? canonicalId(context.caller.identity) : ANONYMOUS_ID
  const bucketOwner = documents.owner
  // A rule of the gateway may let the caller write, and no rule of it gives the right to set ACLs.
  const isGranted = () => context.door.granted('s3:PutObjectAcl', request.bucket, request.key)
  if (writer !== bucketOwner && givesMore(request.headers) && !isGranted()) throw new S3Error('AccessDenied')
  const acl = aclOfHeaders(request.headers, { owner: writer, bucketOwner }, 'object')
  await refuseBlockedAcl(context, request.bucket, acl)
  const canned = request.headers['x-amz-acl']
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html
  if (documents.ownership === 'BucketOwnerPreferred' && canned === 'bucket-owner-full-control') return undefined
  if (writer === bucketOwner && (acl === undefined || isPrivate(acl))) return undefined
  return acl ?? { owner: writer, grants: [{ grantee: { id: writer }, permission: 'FULL_CONTROL' }] }
}

/** Throws AccessControlListNotSupported where ACLs are disabled. */
export function refuseGrants(headers: S3Request['headers']): void {
  const name = ACL_HEADERS.find((header) => header.startsWith('x-amz-grant-') && headers[header] !== undefined)
  if (name === undefined) return
  throw new S3Error('AccessControlListNotSupported', {
    message: `The bucket does not allow ACLs, such as ${name}. Use PutBucketPolicy, or enable them with PutBucketOwnershipControls.`,
    fields: { Header: name },
  })
}

/** Throws AccessDenied for a public ACL while BlockPublicAcls forbids it. */
export async function refuseBlockedAcl(
  context: Pick<Context, 'settings' | 'state'>,
  bucket: string,
  acl: Acl | undefined,
): Promise<void> {
  if (acl && isPublicAcl(acl)) await refusePublicAcl(context, bucket)
}

/** True if the ACL gives only its owner anything. */
export function isPrivate({ owner, grants }: Acl): boolean {
  return grants.length > 0 && grants.every(({ grantee }) => 'id' in grantee && grantee.id === owner)
}
