import pMap from 'p-map'
import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren, type XmlNode } from '../../../common/xml.js'
import { askedOf, bypassesRetention, ofRemoval } from '../../access/required-actions.js'
import { isVersionId } from '../../access/values/query-values.js'
import type { Context } from '../../api/context.js'
import type { LoggedRemoval, S3Request } from '../../api/request.js'
import type { Precondition } from '../../api/store.js'
import type { RemovalResult, VersionRemoval } from '../../api/versions.js'
import { allows } from '../../gateway/account/policies.js'
import { toS3Error } from '../../http/error-reply.js'
import { requireDigest, requireDocument } from '../../http/read-request.js'
import { xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { causeOf } from '../object/attributes.js'
import { removalPrecondition } from '../object/write-conditions.js'
import { hasVersions } from '../versions/version.js'
import { requireBucket } from './owner.js'

/**
 * Number of concurrent removals of one request. After as many consecutive 503 errors the rest is not tried, because
 * each would wait as long again.
 */
const MAX_CONCURRENCY = 8

interface Wanted {
  readonly key: string
  readonly versionId: string | undefined
  readonly precondition: Precondition | undefined
}

interface Outcome {
  readonly error?: S3Error
  readonly removal?: RemovalResult
}

export const deleteObjects = defineOperation({
  name: 'DeleteObjects',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html',
  partly: 'On a gateway that keeps one version of each object, that is "null".',
  access: 'anonymous',
  action: { each: 's3:DeleteObject' },
  needs: { some: 'write' },
  on: { method: 'POST', resource: 'bucket', query: ['delete'] },
  async run(request, context) {
    requireDigest(request)
    // A caller who does not own the bucket may delete without being allowed to list, so for it each key decides.
    const opened = await context.authorizer.opened(request.bucket)
    if (context.caller && !opened) await requireBucket(context, request.bucket)
    const { wanted, quiet } = await readWanted(request, context)
    const isPublic = await publicKeys(request.bucket, context)
    const mayTry = ({ key, versionId }: Wanted) => {
      const { action, more } = askedOf('s3:DeleteObject', { bucket: request.bucket, key, versionId })
      return isPublic(key) || context.authorizer.granted(action, request.bucket, key, more?.versionId)
    }
    const removals: LoggedRemoval[] = []
    const done = (item: Wanted, outcome: Outcome) => {
      const { key, versionId } = item
      removals.push({ key, versionId, status: outcome.error?.status ?? 204, error: outcome.error?.code })
      return resultElement(item, outcome, quiet)
    }
    let unserved = 0
    const results = await pMap(
      wanted,
      async (item) => {
        const refusal = await refusalOf(request, item, context)
        if (refusal || !mayTry(item)) return done(item, { error: refusal ?? new S3Error('AccessDenied') })
        const outcome = unserved < MAX_CONCURRENCY ? await removeOne(request, context, item) : { error: notTried() }
        unserved = outcome.error?.status === 503 ? unserved + 1 : 0
        return done(item, outcome)
      },
      { concurrency: MAX_CONCURRENCY },
    )
    return { ...xml(document('DeleteResult', results.join(''))), removals }
  },
})

/**
 * Returns which keys the caller may delete by the gateway's policies, so that an anonymous caller causes no gateway
 * call per refused key. Other callers may try all keys.
 */
async function publicKeys(bucket: string, { caller, own }: Context): Promise<(key: string) => boolean> {
  if (caller) return () => true
  const entries = await own.listPolicies(bucket)
  return (key) => allows(entries, 'delete', key)
}

/** The decision about one key, or a version of it. */
async function refusalOf(
  { bucket, headers }: S3Request<'bucket'>,
  { key, versionId }: Wanted,
  { authorizer }: Context,
): Promise<S3Error | undefined> {
  if (versionId !== undefined && !isVersionId(versionId)) return new S3Error('NoSuchVersion')
  try {
    await authorizer.decide(...ofRemoval({ bucket, key, versionId }, headers))
    return undefined
  } catch (error) {
    return toS3Error(error)
  }
}

async function readWanted(
  request: S3Request<'bucket'>,
  context: Context,
): Promise<{ wanted: Wanted[]; quiet: boolean }> {
  const bytes = await requireDocument(request.body, context.limits.maxDocumentBytes)
  const root = await parseXml(bytes, 'Delete')
  requireChildren(root, 'Delete', { once: ['Quiet'], many: ['Object'] })
  const wanted = (root.children.get('Object') ?? []).map((object): Wanted => {
    requireChildren(object, 'Object', { once: ['Key', 'VersionId', ...CONDITIONS] })
    const key = childText(object, 'Key')
    if (key === undefined || key === '') throw new S3Error('MalformedXML', { message: 'Every Object needs a Key.' })
    const [etag, size, lastModified] = CONDITIONS.map((name) => readCondition(object, name))
    const precondition = removalPrecondition(
      { etag, size, lastModified },
      { size: 'Size', lastModified: 'LastModifiedTime' },
    )
    return { key, versionId: childText(object, 'VersionId') || undefined, precondition }
  })
  if (wanted.length === 0 || wanted.length > context.limits.maxDeleteKeys) {
    throw new S3Error('MalformedXML', {
      message: `A Delete document names 1 to ${context.limits.maxDeleteKeys} objects.`,
    })
  }
  return { wanted, quiet: childText(root, 'Quiet') === 'true' }
}

const CONDITIONS = ['ETag', 'Size', 'LastModifiedTime'] as const

/** An unset variable of the client leaves an element empty. Ignoring the condition would delete any version. */
function readCondition(object: XmlNode, name: (typeof CONDITIONS)[number]): string | undefined {
  const text = childText(object, name)
  if (text?.trim() === '') throw new S3Error('MalformedXML', { message: `The ${name} of an Object is empty.` })
  return text
}

/**
 * Removes one key per gateway call: a call for several may stop early and still report success (docs/design.md,
 * promise 3).
 */
async function removeOne(request: S3Request<'bucket'>, context: Context, item: Wanted): Promise<Outcome> {
  const { bucket } = request
  try {
    const version = await versionOf(request, item, context)
    if (Buffer.byteLength(item.key) > context.limits.maxKeyBytes) throw new S3Error('KeyTooLongError')
    const cause = causeOf('ObjectRemoved:Delete', request, context)
    return { removal: await context.store.remove(bucket, item.key, cause, item.precondition, version) }
  } catch (thrown) {
    const error = toS3Error(thrown)
    if (error.code === 'InternalError')
      context.log.error({ err: error, bucket }, 'DeleteObjects: could not remove an object')
    return { error }
  }
}

/** Throws NoSuchVersion for a text that is no version id. */
async function versionOf(
  { headers }: S3Request<'bucket'>,
  { versionId: id }: Wanted,
  context: Context,
): Promise<VersionRemoval | undefined> {
  if (id === undefined) return undefined
  const exists = await hasVersions(context)
  if (exists ? !isVersionId(id) : id !== 'null') throw new S3Error('NoSuchVersion')
  return exists ? { id, bypass: bypassesRetention(headers) } : undefined
}

function notTried(): S3Error {
  return new S3Error('ServiceUnavailable', {
    message: 'Deleting this object was not tried, because deleting the objects before it failed.',
  })
}

function resultElement(item: Wanted, { error, removal }: Outcome, quiet: boolean): string {
  const names = element('Key', item.key) + element('VersionId', item.versionId)
  if (error) return `<Error>${names}${element('Code', error.code)}${element('Message', error.message)}</Error>`
  if (quiet) return ''
  const marker = removal?.deleteMarker
    ? element('DeleteMarker', true) + element('DeleteMarkerVersionId', removal.versionId)
    : ''
  return `<Deleted>${names}${marker}</Deleted>`
}
