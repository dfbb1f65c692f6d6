import { S3Error } from '../../../common/errors/s3-error.js'
import { Query } from '../../../common/query.js'
import { askedOf } from '../../access/required-actions.js'
import { headerText, malformedSource, readCopyPath } from '../../access/values/header-values.js'
import type { RequestedAction } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { CustomerKey } from '../../api/encryption.js'
import type { ByteRange } from '../../api/gateway.js'
import type { ReplyHeaders, S3Request } from '../../api/request.js'
import type { Source, StoredObject } from '../../api/store.js'
import { refuseNoBucketName } from '../../http/addressing.js'
import { digesting } from '../../objects/sources.js'
import { refOf } from '../versions/version.js'
import { COPY_SOURCE, checkConditions, failed } from './read-conditions.js'

export interface CopySource {
  readonly bucket: string
  readonly key: string
  /** Absent: the current version. */
  readonly ref?: { readonly id: string } | undefined
}

/**
 * Reads x-amz-copy-source: `/bucket/key` or `bucket/key`, URL-encoded, optionally with `?versionId=ID`. Throws
 * InvalidArgument, InvalidBucketName, KeyTooLongError.
 */
export async function readCopySource(
  request: S3Request<'object'>,
  context: Pick<Context, 'limits' | 'gateway'>,
): Promise<CopySource> {
  const { limits } = context
  const { path, query } = readCopyPath(headerText(request.headers, 'x-amz-copy-source') ?? '')
  const ref = query === '' ? undefined : await refOf(new Query(query), context)
  const slash = path.indexOf('/')
  if (slash <= 0 || slash === path.length - 1) throw malformedSource()
  const bucket = path.slice(0, slash)
  refuseNoBucketName(bucket)
  const key = path.slice(slash + 1)
  const size = Buffer.byteLength(key)
  if (size > limits.maxKeyBytes)
    throw new S3Error('KeyTooLongError', { fields: { Size: size, MaxSizeAllowed: limits.maxKeyBytes } })
  return { bucket, key, ref }
}

export function readingOf({ bucket, key, ref }: CopySource): RequestedAction {
  return askedOf('s3:GetObject', { bucket, key, versionId: ref?.id })
}

/** The object to copy. Throws S3Error, such as NoSuchKey. */
export async function headSource(context: Pick<Context, 'store'>, from: CopySource): Promise<StoredObject> {
  try {
    return await context.store.head(from.bucket, from.key, from.ref)
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'MethodNotAllowed') throw error
    throw new S3Error('InvalidRequest', {
      message: 'The source of a copy request may not specifically refer to a delete marker by version id.',
    })
  }
}

export function sourceVersionHeaders({ versionId }: StoredObject): ReplyHeaders {
  return versionId === undefined ? {} : { 'x-amz-copy-source-version-id': versionId }
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
      // In a versioned bucket, the version stays what it is when another takes its place.
      const ref = object.versionId === undefined ? undefined : { revision: object.revision }
      const { object: opened, download } = await context.store
        .open(object.bucket, object.key, wanted, customer, ref)
        .catch((error) => {
          // It was removed meanwhile.
          if (ref && error instanceof S3Error && error.code === 'NoSuchVersion') throw new SourceChanged()
          throw error
        })
      if (opened.revision !== object.revision) {
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

/** Attempts to copy a source that is being overwritten. */
const MAX_ATTEMPTS = 5

/**
 * Runs `copy`, and `again` while the source is being overwritten. Throws SourceChanged, which clients retry, after
 * MAX_ATTEMPTS.
 */
export async function whileSourceChanges<T>(copy: () => Promise<T>, again: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await (attempt === 1 ? copy() : again())
    } catch (error) {
      if (!(error instanceof SourceChanged) || attempt === MAX_ATTEMPTS) throw error
    }
  }
}
