import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { ByteRange } from '../../gateway/gateway.js'
import { refuseNoBucketName } from '../../request/bucket-name.js'
import { Query } from '../../request/query.js'
import type { S3Request } from '../../request/s3-request.js'
import { digesting } from '../../store/digesting.js'
import type { Source, StoredObject } from '../../store/store.js'
import { headerText } from './headers.js'
import { COPY_SOURCE, checkConditions } from './read-conditions.js'
import { refuseVersion } from './version.js'

export interface CopySource {
  readonly bucket: string
  readonly key: string
}

/** Reads x-amz-copy-source: `/bucket/key` or `bucket/key`, percent-encoded, perhaps with `?versionId=null`. Throws InvalidArgument, InvalidBucketName, KeyTooLongError. */
export function readCopySource(request: S3Request<'object'>, { limits }: Pick<Context, 'limits'>): CopySource {
  const header = headerText(request.headers, 'x-amz-copy-source') ?? ''
  const at = header.lastIndexOf('?versionId=')
  if (at >= 0) refuseVersion(new Query(header.slice(at + 1)))
  const path = decode(at >= 0 ? header.slice(0, at) : header).replace(/^\//, '')
  const slash = path.indexOf('/')
  if (slash <= 0 || slash === path.length - 1) throw malformed()
  const bucket = path.slice(0, slash)
  refuseNoBucketName(bucket)
  const key = path.slice(slash + 1)
  const size = Buffer.byteLength(key)
  if (size > limits.maxKeyBytes)
    throw new S3Error('KeyTooLongError', { fields: { Size: size, MaxSizeAllowed: limits.maxKeyBytes } })
  return { bucket, key }
}

function decode(text: string): string {
  try {
    // Raw UTF-8 in a header arrives as latin-1 characters.
    return decodeURIComponent(/[\u0080-\u00ff]/.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text)
  } catch {
    throw malformed()
  }
}

function malformed(): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'Copy Source must mention the source bucket and key: sourcebucket/sourcekey, percent-encoded.',
    fields: { ArgumentName: 'x-amz-copy-source' },
  })
}

/** The source object after its conditions were checked. A source condition that would be 304 on a read is 412 on a copy. */
export function checkSource(request: S3Request<'object'>, source: StoredObject): void {
  if (checkConditions(request.headers, source, COPY_SOURCE) === 'unchanged') throw new S3Error('PreconditionFailed')
}

/** The bytes of exactly this object; refuses when it was overwritten since it was looked at. */
export function copiedBytes(context: Context, object: StoredObject, range?: { first: number; last: number }): Source {
  const wanted: ByteRange | undefined = range
  return {
    length: range ? range.last - range.first + 1 : object.size,
    async stream(sink, options) {
      const { object: opened, download } = await context.store.open(object.bucket, object.key, wanted)
      if (opened.stamp !== object.stamp) {
        download.discard()
        throw sourceChanged()
      }
      return digesting((to) => download.consume(to), sink, options)
    },
  }
}

export function sourceChanged(): S3Error {
  return new S3Error('PreconditionFailed', {
    message: 'The source object was overwritten while it was being copied. Try again.',
  })
}
