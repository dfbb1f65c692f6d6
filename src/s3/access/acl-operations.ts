import { S3Error } from '../../../common/errors/s3-error.js'
import { isPublicAcl } from '../../access/acl.js'
import { givesMore } from '../../access/required-actions.js'
import type { Acl } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { S3Request } from '../../api/request.js'
import { ANONYMOUS_ID, canonicalId } from '../../auth/credentials.js'
import { empty, xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { refOf, versionHeaders } from '../versions/version.js'
import { ACL_HEADERS, type AclOwners, aclOfHeaders, aclXml, privateAcl, readAclXml, withPublic } from './acl-syntax.js'
import { applyAcl, bucketGrants, objectGrants, readAcl, requireAclTrue } from './gateway-acl.js'
import { readObjectAccess, readPublicAccess, refusePublicAcl } from './public-access-block.js'

/** Reads the ACL of PutBucketAcl or PutObjectAcl, in headers or body. Throws S3Error. */
async function readNewAcl(
  request: S3Request,
  context: Pick<Context, 'limits'>,
  owners: AclOwners,
  kind: 'bucket' | 'object',
): Promise<Acl> {
  const inHeaders = aclOfHeaders(request.headers, owners, kind)
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  if (inHeaders && bytes.length > 0)
    throw new S3Error('InvalidRequest', {
      message: 'An ACL is given in headers or in the body, not in both.',
    })
  if (inHeaders) return inHeaders
  if (bytes.length > 0) return readAclXml(bytes, owners.owner)
  throw new S3Error('MissingSecurityHeader', {
    message: 'An ACL is needed: in x-amz-acl, in x-amz-grant-..., or in the body.',
    fields: { MissingHeaderName: 'x-amz-acl' },
  })
}

/**
 * Returns the ACL to store with a new object; undefined for an object that belongs to the owner of the bucket alone.
 * Where ACLs are disabled, an ACL must say what is the case anyway.
 * @throws S3Error InvalidArgument, AccessDenied, AccessControlListNotSupported, NotImplemented
 */
export async function aclOfWrite(
  request: Pick<S3Request<'object'>, 'headers' | 'bucket' | 'key'>,
  context: Context,
): Promise<Acl | undefined> {
  const documents = await context.authorizer.documents(request.bucket)
  if (!documents || documents.ownership === 'BucketOwnerEnforced') {
    refuseAcl(request.headers, documents, context)
    await requireAclTrue(request, context)
    return undefined
  }
  const writer = callerId(context)
  const bucketOwner = documents.owner
  // A rule of the gateway may let the caller write, and no rule of it gives the right to set ACLs.
  const isGranted = () => context.authorizer.granted('s3:PutObjectAcl', request.bucket, request.key)
  if (writer !== bucketOwner && givesMore(request.headers) && !isGranted()) throw new S3Error('AccessDenied')
  const acl = aclOfHeaders(request.headers, { owner: writer, bucketOwner }, 'object')
  await refuseBlockedAcl(context, request.bucket, acl)
  const canned = request.headers['x-amz-acl']
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html
  if (documents.ownership === 'BucketOwnerPreferred' && canned === 'bucket-owner-full-control') return undefined
  if (writer === bucketOwner && (acl === undefined || isDefault(acl))) return undefined
  return acl ?? { owner: writer, grants: [{ grantee: { id: writer }, permission: 'FULL_CONTROL' }] }
}

function callerId({ caller }: Pick<Context, 'caller'>): string {
  return caller ? canonicalId(caller.identity) : ANONYMOUS_ID
}

/**
 * Throws AccessControlListNotSupported where ACLs are disabled. Clients of the owner commonly send `private`, which is
 * true. From another account it means that the owner of the bucket is to have no access.
 */
function refuseAcl(
  headers: S3Request['headers'],
  documents: { readonly owner: string } | undefined,
  context: Pick<Context, 'caller'>,
): void {
  const grants = ACL_HEADERS.find((header) => header.startsWith('x-amz-grant-') && headers[header] !== undefined)
  const keeps = headers['x-amz-acl'] === 'private' && documents && callerId(context) !== documents.owner
  const name = grants ?? (keeps ? 'x-amz-acl' : undefined)
  if (name === undefined) return
  throw new S3Error('AccessControlListNotSupported', {
    message: `The bucket does not allow ACLs, such as ${name}. Use PutBucketPolicy, or enable them with PutBucketOwnershipControls.`,
    fields: { Header: name },
  })
}

/** Throws AccessDenied for a public ACL while BlockPublicAcls forbids it. */
async function refuseBlockedAcl(
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

/** True for the ACL that S3 gives what was written without one. */
function isDefault({ owner, grants }: Acl): boolean {
  const [grant] = grants
  return isPrivate({ owner, grants }) && grants.length === 1 && grant?.permission === 'FULL_CONTROL'
}

/** Returns the ACL that decides; one that grants nothing where ACLs are disabled. */
export async function aclOfBucket(context: Context, bucket: string): Promise<Acl> {
  const { owner } = await context.authorizer.ownerOf(bucket)
  const record = await context.settings.confirmed(bucket, 'acl')
  const enabled = (await context.authorizer.documents(bucket))?.ownership !== 'BucketOwnerEnforced'
  return enabled && record?.owner === owner ? record.acl : privateAcl(owner)
}

/** The ACL also shows what the gateway itself grants everybody. */
export const getBucketAcl = defineOperation({
  name: 'GetBucketAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html',
  access: 'owner',
  action: 's3:GetBucketAcl',
  needs: { bucket: ['read'] },
  on: { method: 'GET', resource: 'bucket', query: ['acl'] },
  async run({ bucket }, context) {
    const acl = await aclOfBucket(context, bucket)
    return xml(aclXml(withPublic(acl, bucketGrants(await readPublicAccess(context, bucket))), context))
  },
})

/** Where ACLs are disabled, accepts only an ACL that says what is the case anyway. */
export const putBucketAcl = defineOperation({
  name: 'PutBucketAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html',
  partly: 'Grants by e-mail address, which S3 has ended, are MethodNotAllowed.',
  access: 'owner',
  action: 's3:PutBucketAcl',
  needs: { bucket: ['read', 'write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['acl'], headers: ACL_HEADERS },
  async run(request, context) {
    const { bucket } = request
    const documents = await context.authorizer.documents(bucket)
    if (!documents || documents.ownership === 'BucketOwnerEnforced') {
      refuseAcl(request.headers, documents, context)
      const asked = await readAcl(request, context)
      await applyAcl(context, bucket, asked, bucketGrants(await readPublicAccess(context, bucket)))
      return empty()
    }
    const { owner } = documents
    const acl = await readNewAcl(request, context, { owner, bucketOwner: owner }, 'bucket')
    const run = async () => {
      await refuseBlockedAcl(context, bucket, acl)
      await context.state.requireIntact()
      await context.settings.set(bucket, 'acl', { acl, ...(await context.authorizer.ownerOf(bucket)) })
    }
    await context.state.locks.withName(`bucket-policy/${bucket}`, run, { logger: context })
    return empty()
  },
})

/** The ACL also shows what the gateway itself grants everybody. */
export const getObjectAcl = defineOperation({
  name: 'GetObjectAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAcl.html',
  access: 'owner',
  action: 's3:GetObjectAcl',
  on: { method: 'GET', resource: 'object', query: ['acl'], params: ['versionId'] },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const { bucket, key } = request
    const object = await context.store.head(bucket, key, ref)
    const { owner } = await context.authorizer.ownerOf(bucket)
    const ownership = (await context.authorizer.documents(bucket))?.ownership ?? 'BucketOwnerEnforced'
    const acl = (ownership !== 'BucketOwnerEnforced' && object.acl) || privateAcl(owner)
    const shown = withPublic(acl, objectGrants(await readObjectAccess(context, bucket, key), key))
    return xml(aclXml(shown, context), versionHeaders(object))
  },
})

/** Where ACLs are disabled, accepts only an ACL that says what is the case anyway. */
export const putObjectAcl = defineOperation({
  name: 'PutObjectAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html',
  partly: 'Grants by e-mail address, which S3 has ended, are MethodNotAllowed.',
  access: 'owner',
  action: 's3:PutObjectAcl',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', query: ['acl'], params: ['versionId'], headers: ACL_HEADERS },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const { bucket, key } = request
    const documents = await context.authorizer.documents(bucket)
    if (!documents || documents.ownership === 'BucketOwnerEnforced') {
      refuseAcl(request.headers, documents, context)
      const asked = await readAcl(request, context)
      const object = await context.store.head(bucket, key, ref)
      await applyAcl(context, bucket, asked, objectGrants(await readObjectAccess(context, bucket, key), key))
      return empty(versionHeaders(object))
    }
    const object = await context.store.head(bucket, key, ref)
    const owner = object.acl?.owner ?? documents.owner
    const acl = await readNewAcl(request, context, { owner, bucketOwner: documents.owner }, 'object')
    await refuseBlockedAcl(context, bucket, acl)
    await context.state.requireIntact()
    const own = owner === documents.owner && isDefault(acl)
    if (!(await context.store.setAcl(bucket, key, object.revision, own ? undefined : acl))) {
      throw new S3Error('OperationAborted', { message: 'The object was replaced while its ACL was set. Try again.' })
    }
    return empty(versionHeaders(object))
  },
})
