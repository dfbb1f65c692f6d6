import type { Context } from '../../api/context.js'
import type { CustomerKey } from '../../api/encryption.js'
import type { ByteRange } from '../../api/gateway.js'
import type { S3Request } from '../../api/request.js'
import type { Source, StoredObject } from '../../api/store.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { Query } from '../../common/query.js'
import { copySourcePath, refuseNoBucketName } from '../../http/addressing.js'
import { refuseVersion } from '../../http/read-request.js'
import { digesting } from '../../objects/sources.js'
import { headerText } from './attributes.js'
import { COPY_SOURCE, checkConditions, failed } from './read-conditions.js'

export interface CopySource {
  readonly bucket: string
  readonly key: string
}

/**
 * Reads x-amz-copy-source: `/bucket/key` or `bucket/key`, URL-encoded, optionally with `?versionId=null`. Throws
 * InvalidArgument, InvalidBucketName, KeyTooLongError.
 */
export function readCopySource(request: S3Request<'object'>, { limits }: Pick<Context, 'limits'>): CopySource {
  const header = headerText(request.headers, 'x-amz-copy-source') ?? ''
  const source = copySourcePath(header)
  if (!source) throw malformed()
  const { path, query } = source
  if (query !== '') refuseVersion(new Query(query))
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

function malformed(): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'Copy Source must mention the source bucket and key: sourcebucket/sourcekey, percent-encoded.',
    fields: { ArgumentName: 'x-amz-copy-source' },
  })
}

/** Checks the conditions on the source. A condition that gives 304 on a read gives 412 on a copy. */
export function checkSource(request: S3Request<'object'>, source: StoredObject): void {
  if (checkConditions(request.headers, source, COPY_SOURCE) !== 'unchanged') return
  const { noneMatch, modifiedSince } = COPY_SOURCE
  throw failed(request.headers[noneMatch] === undefined ? modifiedSince : noneMatch)
}

/**
 * Returns a source of the bytes of exactly this object. Streaming throws SourceChanged if the object was overwritten.
 */
export function copiedBytes(
  context: Context,
  object: StoredObject,
  { range, customer }: { range?: { first: number; last: number } | undefined; customer: CustomerKey | undefined },
): Source {
  const wanted: ByteRange | undefined = range
  return {
    length: range ? range.last - range.first + 1 : object.size,
    async stream(sink, options) {
      const { object: opened, download } = await context.store.open(object.bucket, object.key, wanted, customer)
      if (opened.stamp !== object.stamp) {
        download.discard()
        throw new SourceChanged()
      }
      return digesting((to) => download.consume(to), sink, options)
    },
  }
}

/** The source was overwritten since its metadata was read; the copy must start over. */
export class SourceChanged extends S3Error {
  constructor() {
    super('ServiceUnavailable', {
      message: 'The source object was repeatedly overwritten while it was being copied. Try again.',
      headers: { 'retry-after': '1' },
    })
  }
}

/** Number of attempts to copy a source that is being overwritten. */
const ATTEMPTS = 5

/**
 * Runs `copy`, and `again` while the source is being overwritten. Throws SourceChanged, which clients retry, after
 * ATTEMPTS.
 */
export async function whileSourceChanges<T>(copy: () => Promise<T>, again: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await (attempt === 1 ? copy() : again())
    } catch (error) {
      if (!(error instanceof SourceChanged) || attempt === ATTEMPTS) throw error
    }
  }
}
