import type { PutRequest, StoredObject } from '../../objects/store.js'
import type { AdmittedWrite } from '../../plugins/forms/storage-class.js'
import type { S3Request } from '../../request/s3-request.js'
import type { LateDocument } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import { askedClass, writeAdmitted } from '../storage-class/storage-class.js'
import { causeOf } from '../vocabulary/cause.js'
import { checksumAlgorithmHeader } from '../vocabulary/headers.js'
import { copyDocument } from './copy-document.js'
import { SourceChanged } from './copy-source.js'

/**
 * Returns true for a copy of an object onto itself into an archive class: the bytes stay in place, and archived copies
 * remain copies of this object. The bytes are read only to compute a checksum that the object does not have yet.
 */
export function staysInPlace({ bucket, key, headers }: S3Request<'object'>, source: StoredObject): boolean {
  const wanted = checksumAlgorithmHeader(headers, 'x-amz-checksum-algorithm')
  const { checksum } = source
  const told = wanted === undefined || (checksum?.algorithm === wanted && checksum.type === 'FULL_OBJECT')
  return source.bucket === bucket && source.key === key && askedClass(headers) !== undefined && told
}

/** Throws SourceChanged if the object has been replaced since it was read. */
export async function copyInPlace(
  request: S3Request<'object'>,
  context: Context,
  source: StoredObject,
  described: Pick<PutRequest, 'attributes' | 'tags' | 'acl' | 'authorized'>,
  admitted: AdmittedWrite | undefined,
): Promise<LateDocument> {
  const { bucket, key } = request
  const event = causeOf('ObjectCreated:Copy', request, context)
  const { result, headers } = await writeAdmitted(context, admitted, request, (archive) =>
    context.store.replaceMetadata({ bucket, key, stamp: source.stamp, ...described, archive, event }),
  )
  if (!result) throw new SourceChanged()
  return { document: copyDocument(result), headers }
}
