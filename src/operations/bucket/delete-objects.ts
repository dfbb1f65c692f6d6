import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { toS3Error } from '../../response/error-reply.js'
import { xml } from '../../response/reply.js'
import { requireChildren } from '../../strict-xml.js'
import { childText, document, element, parseXml, type XmlNode } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'
import { causeOf } from '../common/cause.js'
import { unquoted } from '../common/etags.js'
import { inOrder } from '../common/in-order.js'

/** Removals under way at once for one request. When so many in a row find nobody who does them, the rest is not tried: each would wait as long again. */
const CONCURRENCY = 8

interface Wanted {
  readonly key: string
  readonly versionId: string | undefined
  readonly etag: string | undefined
}

interface Outcome {
  readonly error?: S3Error
}

export const deleteObjects = defineOperation({
  name: 'DeleteObjects',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html',
  partly: 'The one version is "null". Conditions on size and time, for directory buckets, are NotImplemented.',
  access: 'anonymous',
  on: { method: 'POST', resource: 'bucket', query: ['delete'] },
  async run(request, context) {
    const { wanted, quiet } = await readWanted(request, context)
    // Who may not list may yet delete: for somebody who has not signed each key decides.
    if (context.caller) await requireBucket(context, request.bucket)
    let unserved = 0
    const results = await inOrder(wanted, CONCURRENCY, async (item) => {
      const outcome = unserved < CONCURRENCY ? await removeOne(request, context, item) : { error: notTried() }
      unserved = outcome.error?.code === 'ServiceUnavailable' ? unserved + 1 : 0
      return resultElement(item, outcome, quiet)
    })
    return xml(document('DeleteResult', results.join('')))
  },
})

async function readWanted(
  request: S3Request<'bucket'>,
  context: Context,
): Promise<{ wanted: Wanted[]; quiet: boolean }> {
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
  const root = await parseXml(bytes, 'Delete')
  requireChildren(root, 'Delete', { once: ['Quiet'], many: ['Object'] })
  const wanted = (root.children.get('Object') ?? []).map((object): Wanted => {
    requireChildren(object, 'Object', { once: ['Key', 'VersionId', 'ETag', ...CONDITIONS] })
    const key = childText(object, 'Key')
    if (key === undefined || key === '') throw new S3Error('MalformedXML', { message: 'Every Object needs a Key.' })
    refuseConditions(object)
    const etag = childText(object, 'ETag')
    // As an unset variable would leave it: no ETag is empty, and without the condition the object would go whatever it is.
    if (etag?.trim() === '') throw new S3Error('MalformedXML', { message: 'The ETag of an Object is empty.' })
    return { key, versionId: childText(object, 'VersionId') || undefined, etag }
  })
  if (wanted.length === 0 || wanted.length > context.limits.maxDeleteKeys) {
    throw new S3Error('MalformedXML', {
      message: `A Delete document names 1 to ${context.limits.maxDeleteKeys} objects.`,
    })
  }
  return { wanted, quiet: childText(root, 'Quiet') === 'true' }
}

const CONDITIONS = ['LastModifiedTime', 'Size']

/** Passed over, they would let go what the client wanted kept. */
function refuseConditions(object: XmlNode): void {
  for (const name of CONDITIONS) {
    if (!object.children.has(name)) continue
    throw new S3Error('NotImplemented', {
      message: `An Object with ${name}, a condition of directory buckets, cannot be deleted here.`,
    })
  }
}

/** One name per call to the gateway: a call for many may stop early and still say success (DESIGN section 4, promise 3). */
async function removeOne(request: S3Request<'bucket'>, context: Context, item: Wanted): Promise<Outcome> {
  const { bucket } = request
  try {
    if (item.versionId !== undefined && item.versionId !== 'null') throw new S3Error('NoSuchVersion')
    if (Buffer.byteLength(item.key) > context.limits.maxKeyBytes) throw new S3Error('KeyTooLongError')
    const { etag } = item
    await context.store.remove(
      bucket,
      item.key,
      causeOf('ObjectRemoved:Delete', request, context),
      etag === undefined
        ? undefined
        : (current) => {
            if (!current) throw new S3Error('NoSuchKey')
            if (unquoted(etag) !== '*' && unquoted(etag) !== current.etag) throw new S3Error('PreconditionFailed')
          },
    )
    return {}
  } catch (thrown) {
    const error = toS3Error(thrown)
    if (error.code === 'InternalError') context.log.error({ err: error, bucket }, 'DeleteObjects: one removal failed')
    return { error }
  }
}

function notTried(): S3Error {
  return new S3Error('ServiceUnavailable', {
    message: 'The objects before this one could not be deleted: this one was not tried.',
  })
}

function resultElement(item: Wanted, { error }: Outcome, quiet: boolean): string {
  const names = element('Key', item.key) + element('VersionId', item.versionId)
  if (error) return `<Error>${names}${element('Code', error.code)}${element('Message', error.message)}</Error>`
  return quiet ? '' : `<Deleted>${names}</Deleted>`
}
