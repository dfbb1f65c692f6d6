import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, notStrict, parseXml, requireChildren, wholeNumberText, type XmlNode } from '../../../common/xml.js'
import type { RestoreOrder, RestoreOutcome } from '../../api/archive.js'
import type { Context } from '../../api/context.js'
import type { S3Request } from '../../api/request.js'
import type { VersionRef } from '../../api/versions.js'
import { empty } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { refOf } from '../versions/version.js'
import { causeOf } from './attributes.js'
import { presenceOf } from './storage-class.js'

export const restoreObject = defineOperation({
  name: 'RestoreObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html',
  partly:
    'For objects in storage classes that plugins offer. Without Days the object stays restored. Queries (Type SELECT) are NotImplemented.',
  access: 'owner',
  action: 's3:RestoreObject',
  needs: { key: 'write' },
  on: { method: 'POST', resource: 'object', query: ['restore'], params: ['versionId'] },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const { bucket, key } = request
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    const { status, headers } = await restoreStored(
      context,
      { bucket, key, ref },
      await readRestoreOrder(bytes),
      request,
    )
    return empty(headers, status)
  },
})

const TIERS = ['Standard', 'Bulk', 'Expedited'] as const

/** About 5,500 years, so that the year of the expiry date has four digits, as dates in headers require. */
const MAX_DAYS = 2_000_000

/** Elements of queries, which S3 has discontinued. */
const QUERY = ['Type', 'SelectParameters', 'OutputLocation']

/**
 * Reads the body of RestoreObject, which may be empty. Without Days the object stays restored.
 * @throws S3Error MalformedXML, InvalidArgument, InvalidTier, NotImplemented
 */
export async function readRestoreOrder(bytes: Buffer): Promise<RestoreOrder> {
  if (bytes.length === 0) return { days: 0, tier: 'Standard', description: '' }
  const root = await parseXml(bytes, 'RestoreRequest')
  requireChildren(root, 'RestoreRequest', { once: ['Days', 'GlacierJobParameters', 'Tier', 'Description', ...QUERY] })
  const query = QUERY.find((name) => root.children.has(name))
  if (query !== undefined) {
    throw new S3Error('NotImplemented', { message: `Objects cannot be queried: ${query} is not implemented.` })
  }
  return { days: readDays(root), tier: readTier(root), description: childText(root, 'Description') ?? '' }
}

function readDays(root: XmlNode): number {
  const text = childText(root, 'Days')
  if (text === undefined) return 0
  const days = wholeNumberText(text, 'Days')
  if (days >= 1 && days <= MAX_DAYS) return days
  throw new S3Error('InvalidArgument', {
    message: `Days must be from 1 to ${MAX_DAYS}.`,
    fields: { ArgumentName: 'Days', ArgumentValue: days },
  })
}

/** A restore has its tier in GlacierJobParameters, a query beside it; clients send both. */
function readTier(root: XmlNode): RestoreOrder['tier'] {
  const parameters = root.children.get('GlacierJobParameters')?.[0]
  if (parameters) requireChildren(parameters, 'GlacierJobParameters', { once: ['Tier'] })
  const inside = parameters && childText(parameters, 'Tier')
  if (parameters && inside === undefined) throw notStrict('GlacierJobParameters needs Tier.')
  const beside = childText(root, 'Tier')
  if (inside !== undefined && beside !== undefined && inside !== beside)
    throw notStrict('The Tier inside GlacierJobParameters differs from the Tier beside it.')
  const asked = inside ?? beside ?? 'Standard'
  const tier = TIERS.find((name) => name === asked)
  if (tier) return tier
  throw new S3Error('InvalidTier', { message: `There is no such tier; the tiers are ${TIERS.join(', ')}.` })
}

/**
 * Restores an object by the plugin of its storage class, and emits ObjectRestore:Post. Status 200: its bytes are
 * readable, possibly until a new date; 202: the restore has started.
 * @throws S3Error NoSuchKey, AccessDenied, InvalidObjectState for an object that is not in an archive class,
 * RestoreAlreadyInProgress, NotImplemented, and errors of the plugin
 */
export async function restoreStored(
  context: Context,
  { bucket, key, ref }: { readonly bucket: string; readonly key: string; readonly ref?: VersionRef | undefined },
  order: RestoreOrder,
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
): Promise<RestoreOutcome> {
  context.checks.requireKey(bucket, key, 'write')
  const object = await context.store.findToWrite(bucket, key, ref)
  if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
  const { state, storageClass } = presenceOf(object, context.plugins.storageClasses)
  if (state === 'restoring') throw new S3Error('RestoreAlreadyInProgress')
  if (state === 'hot') {
    throw new S3Error('InvalidObjectState', {
      message: "Restore is not allowed for the object's current storage class",
      fields: { StorageClass: storageClass },
    })
  }
  if (state === 'archived') return { status: 200 }
  const offered = context.plugins.storageClasses.get(object.archive?.storageClass ?? storageClass)
  if (!offered?.restore) {
    throw new S3Error('NotImplemented', {
      message: `No loaded plugin can restore objects of the storage class ${storageClass}.`,
    })
  }
  const outcome = await offered.restore(object, order, context)
  if (outcome.status === 202) {
    const { size, etag, versionId } = object
    const cause = causeOf('ObjectRestore:Post', request, context)
    const version = versionId === undefined ? {} : { versionId }
    await context.plugins.hooks.objectMoved({ ...cause, bucket, key, size, etag, time: Date.now(), ...version })
  }
  return outcome
}
