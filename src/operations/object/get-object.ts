import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { ByteRange, Download } from '../../gateway/gateway.js'
import { expirationHeader } from '../../lifecycle/expiration-header.js'
import { defineOperation } from '../../registry/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Reply } from '../../response/reply.js'
import type { StoredObject } from '../../store/store.js'
import { rangeOf } from '../common/if-range.js'
import { OVERRIDES, objectHeaders } from '../common/object-headers.js'
import { refuseAnonymousOverrides, withOverrides } from '../common/overrides.js'
import { type LocatedPart, locatePart, partHeaders } from '../common/part-number.js'
import { refuseCold } from '../common/presence.js'
import { parseRange } from '../common/range.js'
import { checkConditions, mayBeUnchanged, READ } from '../common/read-conditions.js'
import { toldChecksum } from '../common/told-checksum.js'
import { refuseVersion } from '../common/version.js'

/** How often an object that is overwritten between a look and the transfer is looked at again. */
const ATTEMPTS = 3

export const getObject = defineOperation({
  name: 'GetObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html',
  partly: 'The one version is "null". Encryption with customer keys is NotImplemented.',
  access: 'anonymous',
  on: { method: 'GET', resource: 'object', params: ['versionId', 'partNumber', ...Object.keys(OVERRIDES)] },
  async run(request, context): Promise<Reply> {
    refuseVersion(request.query)
    refuseAnonymousOverrides(request, context)
    if (request.headers.range && request.query.has('partNumber')) {
      throw new S3Error('InvalidRequest', {
        message: 'Cannot specify both Range header and partNumber query parameter',
      })
    }
    const opened = mustLookFirst(request) ? await lookThenOpen(request, context) : await openAtOnce(request, context)
    if ('status' in opened) return opened
    const { object, download, ranged, part } = opened
    const checksum = await toldChecksum(request, context, object, part, ranged).catch((error) => {
      download.discard()
      throw error
    })
    return {
      status: ranged ? 206 : 200,
      headers: withOverrides(request, {
        ...objectHeaders(object, context, checksum),
        ...(ranged && { 'content-range': `bytes ${download.first}-${download.last}/${object.size}` }),
        ...partHeaders(part, object),
        'x-amz-expiration': await expirationHeader(context, request.bucket, object),
        'content-length': download.last - download.first + 1,
      }),
      body: { download },
    }
  },
})

interface Opened {
  readonly object: StoredObject
  readonly download: Download
  readonly ranged: boolean
  readonly part?: LocatedPart
}

/** A 304 is likely, or the range depends on what the object is: asking first spares a transfer that would be thrown away. */
function mustLookFirst(request: S3Request<'object'>): boolean {
  return mayBeUnchanged(request.headers) || request.headers['if-range'] !== undefined || request.query.has('partNumber')
}

async function openAtOnce(request: S3Request<'object'>, context: Context): Promise<Opened> {
  const range = parseRange(request.headers.range)
  const { object, download } = await context.store.open(request.bucket, request.key, range).catch(async (error) => {
    // Conditions come before the range, RFC 9110 section 13.2.2: the object may be a shorter one by now.
    if (error instanceof S3Error && error.code === 'InvalidObjectState') throw await whyNotReadable(request, context)
    if (error instanceof S3Error && error.code === 'InvalidRange')
      checkConditions(request.headers, await context.store.head(request.bucket, request.key), READ)
    throw error
  })
  try {
    checkConditions(request.headers, object, READ)
  } catch (error) {
    download.discard()
    throw error
  }
  return { object, download, ranged: range !== undefined }
}

async function whyNotReadable({ bucket, key }: S3Request<'object'>, context: Context): Promise<S3Error> {
  return refuseCold(await context.store.head(bucket, key), context)
}

async function lookThenOpen(request: S3Request<'object'>, context: Context): Promise<Opened | Reply> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const seen = await context.store.head(request.bucket, request.key)
    // Conditions are for what would be answered otherwise, RFC 9110 section 13.2.1.
    if (seen.cold) throw await refuseCold(seen, context)
    if (checkConditions(request.headers, seen, READ) === 'unchanged')
      return { status: 304, headers: objectHeaders(seen, context) }
    const part = locatePart(request, seen)
    const range: ByteRange | undefined = part ? part.range : rangeOf(request, seen)
    const { object, download } = await context.store.open(request.bucket, request.key, range)
    if (object.stamp === seen.stamp) return { object, download, ranged: range !== undefined, part }
    download.discard()
  }
  throw new S3Error('ServiceUnavailable', {
    message: 'The object is being overwritten all the time. Try again.',
    headers: { 'retry-after': '1' },
  })
}
