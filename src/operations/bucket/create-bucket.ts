import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { ACL, cannedAcl } from '../../policy/acl.js'
import { requireOwnerEnforced } from '../../policy/ownership.js'
import { defineOperation } from '../../registry/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { empty } from '../../response/reply.js'
import { endUploads } from '../../state/end-uploads.js'
import type { Tag } from '../../state/state.js'
import { BUCKET_TAGS } from '../../tagging/tag-rules.js'
import { readTags } from '../../tagging/tagging-document.js'
import { childText, parseXml } from '../../xml.js'
import { requireBucketName } from '../common/buckets.js'

const OWNERSHIP = 'x-amz-object-ownership'

export const createBucket = defineOperation({
  name: 'CreateBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html',
  partly:
    'In the configured region. Object lock, directory buckets and object ownership other than BucketOwnerEnforced are NotImplemented.',
  on: { method: 'PUT', resource: 'bucket', headers: [ACL, OWNERSHIP] },
  async run(request, context) {
    requireBucketName(request.bucket)
    refuseAcl(request)
    const { tags } = await readConfiguration(request, context)
    const begun = Date.now()
    await context.gateway.makeBucket(request.bucket)
    await settleIn(request.bucket, tags, begun, context)
    return empty({ location: `/${request.bucket}` })
  },
})

/** A new bucket is nobody's but its owner's. */
function refuseAcl({ headers }: S3Request<'bucket'>): void {
  const acl = cannedAcl(headers)
  if (acl?.READ || acl?.WRITE) throw new S3Error('InvalidBucketAclWithObjectOwnership')
  const ownership = headers[OWNERSHIP]
  if (ownership !== undefined) requireOwnerEnforced(String(ownership))
}

/** Settings and uploads that an earlier bucket of this name left behind, removed by somebody else or half removed here, must not become this one's. */
async function settleIn(bucket: string, tags: readonly Tag[], begun: number, context: Context): Promise<void> {
  try {
    await context.settings.clear(bucket)
    await endUploads(context.state.uploads, bucket, begun)
    if (tags.length > 0) await context.settings.set(bucket, 'tagging', tags)
  } catch (error) {
    await context.gateway.deleteBucket(bucket).catch((err) => {
      context.log.error(
        { err, bucket },
        'a new bucket may have settings and uploads of an earlier one: delete it and make it again',
      )
    })
    throw error
  }
}

/** What the document of a CreateBucket asks for. Throws S3Error for what cannot be had. */
async function readConfiguration(request: S3Request<'bucket'>, context: Context): Promise<{ tags: readonly Tag[] }> {
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  if (bytes.length === 0) return { tags: [] }
  const root = await parseXml(bytes, 'CreateBucketConfiguration')
  for (const name of root.children.keys()) {
    if (name === 'LocationConstraint' || name === 'Tags') continue
    throw new S3Error('NotImplemented', {
      message: `CreateBucketConfiguration holds ${name}, which is for directory buckets: there are none here.`,
    })
  }
  checkLocation(childText(root, 'LocationConstraint'), context)
  return { tags: readTags(root.children.get('Tags')?.[0], BUCKET_TAGS) }
}

/** All buckets are where the gateway is: a constraint may only repeat the configured region. */
function checkLocation(wanted: string | undefined, context: Context): void {
  if (wanted === undefined || wanted === '' || wanted === context.region) return
  throw new S3Error('IllegalLocationConstraintException', {
    message: `This server has one region, ${context.region}: the location constraint ${wanted} does not fit it.`,
  })
}
