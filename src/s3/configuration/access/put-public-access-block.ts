import { S3Error } from '../../../common/errors/s3-error.js'
import { requireChildren } from '../../../common/xml/strict-xml.js'
import { childText, parseXml, type XmlNode } from '../../../common/xml/xml.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { empty } from '../../../response/reply.js'
import type { Context } from '../../../server/context.js'
import { describeAccess, isPublic, readPublicAccess } from '../../policy/public-access.js'
import { BLOCKS, type PublicAccessBlock } from '../../policy/public-access-block.js'

/**
 * BlockPublicPolicy and RestrictPublicBuckets refuse policies for everybody; RestrictPublicBuckets also refuses all
 * anonymous requests to this server. BlockPublicAcls refuses public ACLs. ACLs never grant anything by themselves, so
 * IgnorePublicAcls always holds.
 */
export const putPublicAccessBlock = defineOperation({
  name: 'PutPublicAccessBlock',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutPublicAccessBlock.html',
  partly: 'RestrictPublicBuckets only for a bucket without a policy (access.md).',
  access: 'owner',
  action: 's3:PutBucketPublicAccessBlock',
  needs: { bucket: ['read', 'write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['publicAccessBlock'] },
  async run(request, context) {
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const block = readBlock(await parseXml(bytes, 'PublicAccessBlockConfiguration'))
    const run = async () => {
      if (block.RestrictPublicBuckets) await requireNoPolicy(context, request.bucket)
      await context.settings.set(request.bucket, 'publicAccessBlock', block)
    }
    await context.state.locks.withName(`bucket-policy/${request.bucket}`, run, { by: context })
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

/**
 * Throws NotImplemented if the bucket is public, because the gateway itself would keep serving it, whatever this server
 * answers.
 */
async function requireNoPolicy(context: Context, bucket: string): Promise<void> {
  const present = await readPublicAccess(context, bucket)
  if (!isPublic(present)) return
  throw new S3Error('NotImplemented', {
    message: `RestrictPublicBuckets is not possible for a bucket with a policy for everybody, because the gateway itself would keep serving what the policy grants (${describeAccess(present)}). Remove it with DeleteBucketPolicy first.`,
    fields: { ArgumentName: 'RestrictPublicBuckets' },
  })
}
