import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { ACL } from '../../policy/acl.js'
import { requireAclTrue } from '../../policy/apply-acl.js'
import { defineOperation } from '../../registry/operation.js'
import type { AdmittedWrite } from '../../registry/storage-class.js'
import type { S3Request } from '../../request/s3-request.js'
import { type LateDocument, late } from '../../response/reply.js'
import type { Precondition, PutRequest, StoredObject } from '../../store/store.js'
import { TAGGING, TAGGING_DIRECTIVE, taggingOfCopy } from '../../tagging/tagging-headers.js'
import { ownMetadata, readAttributes } from '../common/attributes.js'
import { causeOf } from '../common/cause.js'
import { checkSource, copiedBytes, readCopySource, sourceChanged } from '../common/copy-source.js'
import { checksumAlgorithmHeader, headerText } from '../common/headers.js'
import { admitClass, askedClass, writeAdmitted } from '../common/storage-class.js'
import { writePrecondition } from '../common/write-conditions.js'
import { copyDocument } from './copy-document.js'
import { copyInPlace, staysInPlace } from './copy-in-place.js'

export const copyObject = defineOperation({
  name: 'CopyObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html',
  partly:
    'Encryption, object lock, grants and website redirects are NotImplemented, archive classes that no plugin offers InvalidStorageClass; checksums are CRC32, CRC32C, CRC64NVME, SHA1 and SHA256. A copy of an object onto itself into an archive class leaves its bytes, ETag and LastModified as they are.',
  on: { method: 'PUT', resource: 'object', header: 'x-amz-copy-source', headers: [TAGGING, TAGGING_DIRECTIVE, ACL] },
  async run(request, context) {
    await requireAclTrue(request, context)
    const from = readCopySource(request, context)
    const source = await context.store.head(from.bucket, from.key)
    if (source.cold) throw new S3Error('ObjectNotInActiveTierError')
    checkSource(request, source)
    const inPlace = staysInPlace(request, source)
    if (!inPlace && source.size > context.limits.maxPutBytes) {
      throw new S3Error('InvalidRequest', {
        message: `The specified copy source is larger than the maximum allowable size for a copy source: ${context.limits.maxPutBytes}`,
      })
    }
    const attributes = copiedAttributes(request, context, source)
    const tags = taggingOfCopy(request.headers, source.tags)
    const precondition = writePrecondition(request.headers)
    if (precondition) precondition(await context.store.find(request.bucket, request.key))
    const { bucket, key, headers } = request
    const { metadata } = attributes
    const kept = inPlace ? source : undefined
    const write = { operation: 'CopyObject', bucket, key, metadata, headers, size: source.size, kept } as const
    const admitted = await admitClass(askedClass(headers), write, context)
    return late((inPlace ? copyInPlace : copy)(request, context, source, { attributes, tags }, admitted))
  },
})

async function copy(
  request: S3Request<'object'>,
  context: Context,
  source: StoredObject,
  described: Pick<PutRequest, 'attributes' | 'tags'>,
  admitted: AdmittedWrite | undefined,
): Promise<LateDocument> {
  const asked = checksumAlgorithmHeader(request.headers, 'x-amz-checksum-algorithm')
  const { result, headers } = await writeAdmitted(context, admitted, request, (archive) =>
    context.store.put({
      bucket: request.bucket,
      key: request.key,
      source: copiedBytes(context, source),
      ...described,
      archive,
      // The bytes are the same: a checksum over all of them stays true.
      checksum: asked === undefined && source.checksum?.type === 'FULL_OBJECT' ? source.checksum : undefined,
      wantChecksum: asked ?? (source.checksum?.type === 'COMPOSITE' ? source.checksum.algorithm : undefined),
      event: causeOf('ObjectCreated:Copy', request, context),
      precondition: copyPrecondition(request, source),
      maxBytes: context.limits.maxPutBytes,
    }),
  )
  return { document: copyDocument(result), headers }
}

/** A copy onto itself changes what is there: what was written or removed since it began must not give way to the older bytes. */
function copyPrecondition(request: S3Request<'object'>, source: StoredObject): Precondition | undefined {
  const asked = writePrecondition(request.headers)
  if (!isItself(request, source)) return asked
  return (current) => {
    asked?.(current)
    if (current?.stamp !== source.stamp) throw sourceChanged()
  }
}

function isItself(request: S3Request<'object'>, source: StoredObject): boolean {
  return source.bucket === request.bucket && source.key === request.key
}

/** Those of the source, or with x-amz-metadata-directive REPLACE those of the request. Throws InvalidRequest for a copy onto itself that changes nothing. */
function copiedAttributes(
  request: S3Request<'object'>,
  context: Context,
  source: StoredObject,
): PutRequest['attributes'] {
  const directive = headerText(request.headers, 'x-amz-metadata-directive') ?? 'COPY'
  if (directive !== 'COPY' && directive !== 'REPLACE') {
    throw new S3Error('InvalidArgument', {
      message: 'Unknown metadata directive.',
      fields: { ArgumentName: 'x-amz-metadata-directive', ArgumentValue: directive },
    })
  }
  if (directive === 'REPLACE') return readAttributes(request.headers, context)
  if (isItself(request, source) && request.headers['x-amz-storage-class'] === undefined) {
    throw new S3Error('InvalidRequest', {
      message:
        "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
    })
  }
  const { contentType, headers, metadata } = source
  return { contentType, headers, metadata: ownMetadata(metadata, context) }
}
