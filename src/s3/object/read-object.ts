import { S3Error } from '../../../common/errors/s3-error.js'
import type { Context } from '../../api/context.js'
import type { CustomerKey } from '../../api/encryption.js'
import type { ByteRange, Download } from '../../api/gateway.js'
import type { Reply, S3Request } from '../../api/request.js'
import type { StoredObject } from '../../api/store.js'
import type { VersionRef } from '../../api/versions.js'
import { resolveRange } from '../../gateway/objects/download-body.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { expirationHeader } from '../lifecycle/headers.js'
import { lockHeaders } from '../versions/lock-headers.js'
import { refOf } from '../versions/version.js'
import { ENCRYPTION_HEADERS, keyToRead, requireCustomerKey } from './encryption.js'
import {
  OVERRIDES,
  objectHeaders,
  refuseAnonymousOverrides,
  reportedChecksum,
  withOverrides,
} from './object-headers.js'
import {
  checkConditions,
  type LocatedPart,
  locatePart,
  mayBeUnchanged,
  parseRange,
  partHeaders,
  READ,
  rangeOf,
} from './read-conditions.js'
import { refuseCold } from './storage-class.js'

/** Attempts to open an object that is overwritten between its HEAD and its transfer. */
const MAX_ATTEMPTS = 3

const ON = {
  resource: 'object',
  params: ['versionId', 'partNumber', ...Object.keys(OVERRIDES)],
  headers: ENCRYPTION_HEADERS,
} as const

export const getObject = defineOperation({
  name: 'GetObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html',
  access: 'anonymous',
  action: 's3:GetObject',
  on: { method: 'GET', ...ON },
  async run(request, context): Promise<Reply> {
    const ref = request.query.has('versionId') ? await refOf(request.query, context) : undefined
    refuseAnonymousOverrides(request, context)
    if (request.headers.range && request.query.has('partNumber')) throw rangeAndPart()
    const customer = keyToRead(request, context)
    const opened = mustLookFirst(request)
      ? await lookThenOpen(request, context, customer, ref)
      : await openAtOnce(request, context, customer, ref)
    if ('status' in opened) return opened
    const { bytes: download } = opened
    try {
      return { ...(await replyWith(request, context, opened, customer, ref?.id)), body: { download } }
    } catch (error) {
      download.discard()
      throw error
    }
  },
})

/** What a reply shows of an object, all of it or the bytes of a range or a part. */
interface Shown {
  readonly object: StoredObject
  readonly bytes: Pick<Download, 'first' | 'last'>
  readonly ranged: boolean
  readonly part?: LocatedPart | undefined
}

interface Opened extends Shown {
  readonly bytes: Download
}

/**
 * Returns true if a 304 is likely, or if the range depends on the object: reading the metadata first avoids a transfer
 * that would be discarded.
 */
function mustLookFirst(request: S3Request<'object'>): boolean {
  return mayBeUnchanged(request.headers) || request.headers['if-range'] !== undefined || request.query.has('partNumber')
}

async function openAtOnce(
  request: S3Request<'object'>,
  context: Context,
  customer: CustomerKey | undefined,
  ref: VersionRef | undefined,
): Promise<Opened> {
  const range = parseRange(request.headers.range)
  const { object, download } = await context.store
    .open(request.bucket, request.key, range, customer, ref)
    .catch((error: unknown) => refuseOpening(error, request, context, ref))
  try {
    checkConditions(request.headers, object, READ)
  } catch (error) {
    download.discard()
    throw error
  }
  return { object, bytes: download, ranged: range !== undefined }
}

/** Throws what a GET is answered with whose object could not be opened. */
async function refuseOpening(
  error: unknown,
  request: S3Request<'object'>,
  context: Context,
  ref: VersionRef | undefined,
): Promise<never> {
  // Conditions take precedence over the range, RFC 9110 section 13.2.2: a shorter object may have replaced this one.
  if (error instanceof S3Error && error.code === 'InvalidObjectState')
    throw await refuseCold(await context.store.head(request.bucket, request.key, ref), context)
  if (!(error instanceof S3Error) || error.code !== 'InvalidRange') throw error
  checkConditions(request.headers, await context.store.head(request.bucket, request.key, ref), READ)
  const { message, fields, headers } = error
  const asked = { RangeRequested: request.headers.range ?? '' }
  throw new S3Error('InvalidRange', { message, headers, fields: { ...asked, ...fields } })
}

async function lookThenOpen(
  request: S3Request<'object'>,
  context: Context,
  customer: CustomerKey | undefined,
  ref: VersionRef | undefined,
): Promise<Opened | Reply> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const seen = await context.store.head(request.bucket, request.key, ref)
    // Conditions apply only to requests that would succeed otherwise, RFC 9110 section 13.2.1.
    if (seen.cold) throw await refuseCold(seen, context)
    await context.store.requireCustomerKey(seen, customer)
    if (checkConditions(request.headers, seen, READ) === 'unchanged')
      return { status: 304, headers: objectHeaders(seen, context.plugins, { customer }) }
    const part = locatePart(request, seen)
    const range: ByteRange | undefined = part ? part.range : rangeOf(request, seen)
    const { object, download } = await context.store.open(request.bucket, request.key, range, customer, ref)
    if (object.revision === seen.revision) return { object, bytes: download, ranged: range !== undefined, part }
    download.discard()
  }
  throw new S3Error('ServiceUnavailable', {
    message: 'The object is being overwritten repeatedly. Try again.',
    headers: { 'retry-after': '1' },
  })
}

export const headObject = defineOperation({
  name: 'HeadObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html',
  access: 'anonymous',
  action: 's3:GetObject',
  on: { method: 'HEAD', ...ON },
  async run(request, context): Promise<Reply> {
    const ref = request.query.has('versionId') ? await refOf(request.query, context) : undefined
    refuseAnonymousOverrides(request, context)
    const customer = keyToRead(request, context)
    const object = await context.store.head(request.bucket, request.key, ref)
    await requireCustomerKey(object, customer, context)
    if (checkConditions(request.headers, object, READ) === 'unchanged')
      return { status: 304, headers: objectHeaders(object, context.plugins, { customer }) }
    const part = locatePart(request, object)
    const asked = part ? part.range : rangeOf(request, object)
    const range = asked && resolveRange(asked, object.size)
    if (part && request.headers.range) throw rangeAndPart()
    const bytes = range ?? { first: 0, last: object.size - 1 }
    return replyWith(request, context, { object, bytes, ranged: range !== undefined, part }, customer, ref?.id)
  },
})

/** The reply without a body. */
async function replyWith(
  request: S3Request<'object'>,
  context: Context,
  { object, part, ranged, bytes: { first, last } }: Shown,
  customer: CustomerKey | undefined,
  versionId: string | undefined,
): Promise<Reply> {
  const checksum = object.checksum && (await reportedChecksum(request, context, object, part, ranged))
  const lock = object.lock && (await lockHeaders(object, context, versionId))
  // Rules with days are about the current version.
  const expiration = versionId === undefined ? await expirationHeader(context, request.bucket, object) : undefined
  const headers = Object.assign(
    objectHeaders(object, context.plugins, { checksum, customer }),
    partHeaders(part, object),
    lock,
  )
  if (ranged) headers['content-range'] = `bytes ${first}-${last}/${object.size}`
  headers['x-amz-expiration'] = expiration
  headers['content-length'] = last - first + 1
  return { status: ranged ? 206 : 200, headers: withOverrides(request, headers) }
}

function rangeAndPart(): S3Error {
  return new S3Error('InvalidRequest', { message: 'Cannot specify both Range header and partNumber query parameter' })
}
