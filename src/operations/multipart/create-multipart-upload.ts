import { randomBytes } from 'node:crypto'
import type { ChecksumAlgorithm } from '../../common/checksums.js'
import { isCombinable } from '../../common/checksums.js'
import { S3Error } from '../../errors/s3-error.js'
import { ACL } from '../../policy/acl.js'
import { requireAclTrue } from '../../policy/apply-acl.js'
import { defineOperation } from '../../registry/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { xml } from '../../response/reply.js'
import type { ChecksumType, UploadRecord } from '../../state/state.js'
import { TAGGING, taggingOfHeader } from '../../tagging/tagging-headers.js'
import { document, element } from '../../xml.js'
import { readAttributes } from '../common/attributes.js'
import { requireBucket } from '../common/buckets.js'
import { checksumAlgorithmHeader, headerText } from '../common/headers.js'
import { admitClass, askedClass } from '../common/storage-class.js'
import { accessKeyId } from './upload.js'

export const createMultipartUpload = defineOperation({
  name: 'CreateMultipartUpload',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html',
  partly:
    'Encryption, object lock, grants and website redirects are NotImplemented, archive classes that no plugin offers InvalidStorageClass; checksums are CRC32, CRC32C, CRC64NVME, SHA1 and SHA256.',
  on: { method: 'POST', resource: 'object', query: ['uploads'], headers: [TAGGING, ACL] },
  async run(request, context) {
    await requireAclTrue(request, context)
    const checksum = readChecksum(request)
    const attributes = readAttributes(request.headers, context)
    const tags = taggingOfHeader(request.headers)
    context.requireKey(request.bucket, request.key, 'write')
    // The date first: of a bucket that is made again in between, the upload is refused in the end.
    const birth = await context.births.now(request.bucket)
    await requireBucket(context, request.bucket)
    // A key that the gateway will refuse in the end is refused before gigabytes of parts were sent.
    const why = await context.gateway.refusesKey(request.key)
    if (why !== undefined) throw new S3Error('InvalidArgument', { message: why, fields: { ArgumentName: 'key' } })
    const storageClass = askedClass(request.headers)
    const { bucket, key, headers } = request
    const write = { operation: 'CreateMultipartUpload', bucket, key, metadata: attributes.metadata, headers } as const
    // What is refused in the end is refused before gigabytes of parts were sent; it is asked again when there is something to store.
    await (await admitClass(storageClass, write, context))?.dropped()
    const uploadId = randomBytes(24).toString('base64url')
    await context.state.uploads.create({
      uploadId,
      bucket: request.bucket,
      birth,
      key: request.key,
      initiated: Date.now(),
      accessKeyId: accessKeyId(context),
      ...attributes,
      checksum,
      tags,
      storageClass,
    })
    return xml(
      document(
        'InitiateMultipartUploadResult',
        element('Bucket', request.bucket) + element('Key', request.key) + element('UploadId', uploadId),
      ),
      checksum && { 'x-amz-checksum-algorithm': checksum.algorithm, 'x-amz-checksum-type': checksum.type },
    )
  },
})

/** Which types an algorithm can have: https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html */
function readChecksum(request: S3Request<'object'>): UploadRecord['checksum'] {
  const algorithm = checksumAlgorithmHeader(request.headers, 'x-amz-checksum-algorithm')
  const type = headerText(request.headers, 'x-amz-checksum-type')?.toUpperCase()
  if (!algorithm) {
    if (type !== undefined)
      throw new S3Error('InvalidRequest', {
        message: 'The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.',
      })
    return undefined
  }
  if (type !== undefined && type !== 'COMPOSITE' && type !== 'FULL_OBJECT') {
    throw new S3Error('InvalidRequest', { message: 'Value for x-amz-checksum-type header is invalid.' })
  }
  const chosen: ChecksumType = type ?? (algorithm === 'CRC64NVME' ? 'FULL_OBJECT' : 'COMPOSITE')
  if (!typeFits(algorithm, chosen)) {
    throw new S3Error('InvalidRequest', {
      message: `The ${chosen} checksum type cannot be used with the ${algorithm} checksum algorithm.`,
    })
  }
  return { algorithm, type: chosen }
}

function typeFits(algorithm: ChecksumAlgorithm, type: ChecksumType): boolean {
  return type === 'FULL_OBJECT' ? isCombinable(algorithm) : algorithm !== 'CRC64NVME'
}
