import { isDeepStrictEqual } from 'node:util'
import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, escapeXml, parseXml, requireChildren } from '../../../common/xml.js'
import { readOwnership } from '../../access/values/acl-values.js'
import { headerText, OWNERSHIP } from '../../access/values/header-values.js'
import type { Acl, Ownership, Tag } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { S3Request } from '../../api/request.js'
import { empty, noContent, xml } from '../../http/reply.js'
import { BUCKET_TAGS, readTags } from '../../http/tags.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { endUploads } from '../../state/uploads/upload-sweep.js'
import { aclOfBucket, isPrivate } from '../access/acl-operations.js'
import { ACL_HEADERS, aclOfHeaders } from '../access/acl-syntax.js'
import { requireLocks } from '../versions/version.js'
import { requireBucket, requireBucketName, requireFreeName } from './owner.js'

const LOCK = 'x-amz-bucket-object-lock-enabled'

export const createBucket = defineOperation({
  name: 'CreateBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html',
  partly:
    'Only in the configured region, which a LocationConstraint may name, also us-east-1, where S3 accepts none. Directory buckets are NotImplemented, and object lock on a gateway that cannot lock objects.',
  access: 'signed',
  action: 's3:CreateBucket',
  keeps: 'uploads',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', headers: [...ACL_HEADERS, OWNERSHIP, LOCK] },
  async run(request, context) {
    requireBucketName(request.bucket)
    await requireFreeName(request.bucket, context)
    const access = await readAccess(request, context)
    const lock = await readLock(request, context)
    const { tags } = await readConfiguration(request, context)
    const begun = Date.now()
    try {
      await context.gateway.makeBucket(request.bucket, { lock })
    } catch (error) {
      if (!(error instanceof S3Error && error.code === 'BucketAlreadyOwnedByYou')) throw error
      await requireReallyOwned(request.bucket, context)
      // In us-east-1 alone, S3 answers 200 to an owner who creates a bucket again. Tags, object ownership, ACL and lock
      // would be ignored, so a request for others stays an error.
      const { region } = context.server
      if (region !== 'us-east-1' || tags.length > 0 || !(await hasAccess(request, access, context))) throw error
      if (lock && !(await context.gateway.versioning(request.bucket)).lock) throw error
      return empty({ location: `/${request.bucket}` })
    }
    await initialize(request.bucket, tags, access, begun, context)
    return empty({ location: `/${request.bucket}` })
  },
})

/** Throws InvalidArgument, and NotImplemented on a gateway that locks no objects. */
async function readLock({ bucket, headers }: S3Request<'bucket'>, context: Context): Promise<boolean> {
  const asked = headerText(headers, LOCK)?.toLowerCase() ?? 'false'
  if (asked === 'false') return false
  if (asked !== 'true')
    throw new S3Error('InvalidArgument', {
      message: `${LOCK} must be true or false.`,
      fields: { ArgumentName: LOCK, ArgumentValue: asked.slice(0, 100) },
    })
  await requireLocks(context, `The header ${LOCK}`)
  const ask = (action: string) => ({ action, bucket })
  await context.authorizer.decide(ask('s3:PutBucketVersioning'), ask('s3:PutBucketObjectLockConfiguration'))
  return true
}

/** Throws BucketAlreadyExists for the bucket of another account: public gateways say that the caller owned it. */
async function requireReallyOwned(bucket: string, { checks }: Context): Promise<void> {
  try {
    await checks.requireOwner(bucket)
  } catch (error) {
    if (!(error instanceof S3Error && error.code === 'AccessDenied')) throw error
    throw new S3Error('BucketAlreadyExists', { fields: { BucketName: bucket } })
  }
}

interface NewAccess {
  readonly ownership: Ownership
  readonly acl: Acl | undefined
}

/** Throws InvalidBucketAclWithObjectOwnership for an ACL where ACLs are disabled. */
async function readAccess({ bucket, headers }: S3Request<'bucket'>, context: Context): Promise<NewAccess> {
  const asked = headers[OWNERSHIP]
  const ownership = asked === undefined ? context.server.objectOwnership : readOwnership(String(asked))
  const { owner } = await context.authorizer.ownerOf(bucket)
  const acl = aclOfHeaders(headers, { owner, bucketOwner: owner }, 'bucket')
  if (ownership === 'BucketOwnerEnforced' && acl && !isPrivate(acl))
    throw new S3Error('InvalidBucketAclWithObjectOwnership')
  return { ownership, acl: acl && !isPrivate(acl) ? acl : undefined }
}

/** True for a bucket that has the object ownership and the ACL that a request states. */
async function hasAccess({ bucket, headers }: S3Request<'bucket'>, access: NewAccess, context: Context) {
  if (headers[OWNERSHIP] !== undefined) {
    const documents = await context.authorizer.documents(bucket)
    if ((documents?.ownership ?? 'BucketOwnerEnforced') !== access.ownership) return false
  }
  if (!ACL_HEADERS.some((name) => headers[name] !== undefined)) return true
  const current = await aclOfBucket(context, bucket)
  return access.acl ? isDeepStrictEqual(current, access.acl) : isPrivate(current)
}

/**
 * Removes settings and uploads of an earlier bucket of this name, which another program deleted or this server deleted
 * only in part, and sets tags, object ownership and ACL.
 */
async function initialize(
  bucket: string,
  tags: readonly Tag[],
  { ownership, acl }: NewAccess,
  begun: number,
  context: Context,
): Promise<void> {
  try {
    await context.settings.clear(bucket)
    await endUploads(context.state.uploads, bucket, begun, context)
    if (tags.length > 0) await context.settings.set(bucket, 'tagging', tags)
    const owned = await context.authorizer.ownerOf(bucket)
    if (ownership !== 'BucketOwnerEnforced')
      await context.settings.set(bucket, 'objectOwnership', { ownership, ...owned })
    if (acl) await context.settings.set(bucket, 'acl', { acl, ...owned })
  } catch (error) {
    await context.gateway.deleteBucket(bucket).catch((err) => {
      context.log.error(
        { err, bucket },
        'a new bucket may have settings and uploads of an earlier one: delete it and create it again',
      )
    })
    throw error
  }
}

/** Reads the body of CreateBucket. Throws S3Error for unsupported configurations. */
async function readConfiguration(request: S3Request<'bucket'>, context: Context): Promise<{ tags: readonly Tag[] }> {
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  if (bytes.length === 0) return { tags: [] }
  const root = await parseXml(bytes, 'CreateBucketConfiguration')
  // Location and Bucket are for directory buckets.
  requireChildren(root, 'CreateBucketConfiguration', { once: ['LocationConstraint', 'Tags'] })
  checkLocation(childText(root, 'LocationConstraint'), context)
  return { tags: readTags(root.children.get('Tags')?.[0], BUCKET_TAGS) }
}

/**
 * All buckets are in one region, so a constraint may only repeat the configured region. Clients that know no region
 * send none.
 */
function checkLocation(wanted: string | undefined, { server: { region } }: Context): void {
  if (wanted === undefined || wanted === '' || wanted === region) return
  if (!/^[a-z]{2,}(?:-[a-z]+)+-\d+$|^EU$/.test(wanted)) {
    throw new S3Error('InvalidLocationConstraint', { fields: { LocationConstraint: wanted.slice(0, 64) } })
  }
  throw new S3Error('IllegalLocationConstraintException', {
    message: `The ${wanted} location constraint is incompatible for the region specific endpoint this request was sent to.`,
    fields: { Region: region },
  })
}

export const deleteBucket = defineOperation({
  name: 'DeleteBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html',
  access: 'owner',
  action: 's3:DeleteBucket',
  needs: { bucket: ['write'] },
  on: { method: 'DELETE', resource: 'bucket' },
  async run(request, context) {
    const begun = Date.now()
    await context.gateway.deleteBucket(request.bucket)
    await context.settings.clear(request.bucket)
    // S3 deletes a bucket with multipart uploads in progress, unless it is a directory bucket.
    await endUploads(context.state.uploads, request.bucket, begun, context)
    return noContent()
  },
})

export const headBucket = defineOperation({
  name: 'HeadBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html',
  access: 'anonymous',
  action: 's3:ListBucket',
  on: { method: 'HEAD', resource: 'bucket' },
  async run(request, context) {
    await requireBucket(context, request.bucket)
    return empty({ 'content-type': 'application/xml', 'x-amz-bucket-region': context.server.region })
  },
})

export const getBucketLocation = defineOperation({
  name: 'GetBucketLocation',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html',
  access: 'anonymous',
  action: 's3:GetBucketLocation',
  on: { method: 'GET', resource: 'bucket', query: ['location'] },
  async run(request, context) {
    await requireBucket(context, request.bucket)
    // "Buckets in Region us-east-1 have a LocationConstraint of null."
    return xml(
      document('LocationConstraint', context.server.region === 'us-east-1' ? '' : escapeXml(context.server.region)),
    )
  },
})
