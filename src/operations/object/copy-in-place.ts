import type { Context } from '../../context.js'
import type { AdmittedWrite } from '../../registry/storage-class.js'
import type { S3Request } from '../../request/s3-request.js'
import type { LateDocument } from '../../response/reply.js'
import type { PutRequest, StoredObject } from '../../store/store.js'
import { causeOf } from '../common/cause.js'
import { sourceChanged } from '../common/copy-source.js'
import { checksumAlgorithmHeader } from '../common/headers.js'
import { askedClass, writeAdmitted } from '../common/storage-class.js'
import { copyDocument } from './copy-document.js'

/**
 * True for a copy of an object onto itself into an archive class: the bytes stay where they are, and the copies that are kept of them elsewhere stay copies of this very
 * object. Only a checksum that it does not have yet makes them be read.
 */
export function staysInPlace({ bucket, key, headers }: S3Request<'object'>, source: StoredObject): boolean {
  const wanted = checksumAlgorithmHeader(headers, 'x-amz-checksum-algorithm')
  const { checksum } = source
  const told = wanted === undefined || (checksum?.algorithm === wanted && checksum.type === 'FULL_OBJECT')
  return source.bucket === bucket && source.key === key && askedClass(headers) !== undefined && told
}

/** Throws PreconditionFailed when it is no longer the object that was looked at. */
export async function copyInPlace(
  request: S3Request<'object'>,
  context: Context,
  source: StoredObject,
  described: Pick<PutRequest, 'attributes' | 'tags'>,
  admitted: AdmittedWrite | undefined,
): Promise<LateDocument> {
  const { bucket, key } = request
  const event = causeOf('ObjectCreated:Copy', request, context)
  const { result, headers } = await writeAdmitted(context, admitted, request, (archive) =>
    context.store.describe({ bucket, key, stamp: source.stamp, ...described, archive, event }),
  )
  if (!result) throw sourceChanged()
  return { document: copyDocument(result), headers }
}
