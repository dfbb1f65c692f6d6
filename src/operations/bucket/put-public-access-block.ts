import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { BLOCKS, type PublicAccessBlock } from '../../policy/public-access-block.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { requireChildren } from '../../strict-xml.js'
import { childText, parseXml, type XmlNode } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/**
 * BlockPublicPolicy and RestrictPublicBuckets keep policies for everybody out; RestrictPublicBuckets refuses all anonymous requests here as well. Public ACLs are
 * refused with BlockPublicAcls, and never grant anything by themselves, which is what IgnorePublicAcls asks for.
 */
export const putPublicAccessBlock = defineOperation({
  name: 'PutPublicAccessBlock',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutPublicAccessBlock.html',
  partly: 'RestrictPublicBuckets only for a bucket without a policy (access.md).',
  on: { method: 'PUT', resource: 'bucket', query: ['publicAccessBlock'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    context.requireWholeBucket(request.bucket, 'write')
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const block = readBlock(await parseXml(bytes, 'PublicAccessBlockConfiguration'))
    await requireBucket(context, request.bucket)
    await context.state.locks.withName(`bucket-policy/${request.bucket}`, async () => {
      if (block.RestrictPublicBuckets) await requireNoPolicy(context, request.bucket)
      await context.settings.set(request.bucket, 'publicAccessBlock', block)
    })
    return empty()
  },
})

function readBlock(root: XmlNode): PublicAccessBlock {
  requireChildren(root, 'PublicAccessBlockConfiguration', { once: BLOCKS })
  return Object.fromEntries(BLOCKS.map((name) => [name, readBoolean(name, childText(root, name))])) as PublicAccessBlock
}

function readBoolean(name: string, text: string | undefined): boolean {
  const word = text?.trim().toLowerCase()
  if (word === undefined || word === 'false') return false
  if (word === 'true') return true
  throw new S3Error('MalformedXML', { message: `${name} must be true or false.` })
}

/** What is public already would stay so at the gateway's own door, whatever this server answers. */
async function requireNoPolicy(context: Context, bucket: string): Promise<void> {
  if ((await context.gateway.listPolicies(bucket)).length === 0) return
  throw new S3Error('NotImplemented', {
    message:
      'RestrictPublicBuckets cannot be promised for a bucket that has a policy for everybody: the gateway itself goes on serving what it grants. Remove it with DeleteBucketPolicy first.',
    fields: { ArgumentName: 'RestrictPublicBuckets' },
  })
}
