import { randomBytes } from 'node:crypto'
import { headersOfUpload } from '../../access/door/asked-by.js'
import { canonicalId } from '../../auth/identities/canonical-id.js'
import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'
import { isCombinable } from '../../common/checksums/checksums.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { document, element } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { xml } from '../../response/reply.js'
import type { ChecksumType, UploadRecord } from '../../state/state.js'
import { OBJECT_ACL_HEADERS } from '../acl/acl-headers.js'
import { aclOfWrite } from '../acl/write-acl.js'
import { admitClass, askedClass } from '../storage-class/storage-class.js'
import { TAGGING, taggingOfHeader } from '../tagging/tagging-headers.js'
import { readAttributes } from '../vocabulary/attributes.js'
import { checksumAlgorithmHeader, headerText } from '../vocabulary/headers.js'
import { beginUpload } from './begin-upload.js'
import { requireMayWrite } from './may-write.js'
import { accessKeyId } from './upload.js'

export const createMultipartUpload = defineOperation({
  name: 'CreateMultipartUpload',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html',
  partly:
    'Encryption, object lock and website redirects are NotImplemented, archive classes that no plugin offers InvalidStorageClass.',
  access: 'signed',
  action: 's3:PutObject',
  keeps: 'uploads',
  needs: { key: 'write' },
  on: { method: 'POST', resource: 'object', query: ['uploads'], headers: [TAGGING, ...OBJECT_ACL_HEADERS] },
  async run(request, context) {
    const acl = await aclOfWrite(request, context)
    const checksum = readChecksum(request)
    const attributes = readAttributes(request.headers, context)
    const tags = taggingOfHeader(request.headers)
    // The creation date is read first, so that the completion is refused if the bucket is replaced in between.
    const birth = await context.births.now(request.bucket)
    const owns = await requireMayWrite(context, request.bucket, request.key)
    if (tags) await context.checks.requireOwner(request.bucket, { action: 's3:PutObjectTagging', key: request.key })
    // Refuse a key that the gateway would refuse at the end before gigabytes of parts are sent.
    const why = await context.gateway.refusesKey(request.key)
    if (why !== undefined) throw new S3Error('InvalidArgument', { message: why, fields: { ArgumentName: 'key' } })
    const storageClass = askedClass(request.headers)
    const { bucket, key, headers } = request
    const { metadata } = attributes
    const authorized = await context.checks.authorize(metadata, { bucket, key })
    const write = { operation: 'CreateMultipartUpload', bucket, key, metadata, authorized, headers } as const
    // Check admission to the storage class before gigabytes of parts are sent. The completion checks it again.
    await (await admitClass(storageClass, write, context))?.dropped()
    // Command lines take an id that begins with "-", as base64url may, for an option.
    const uploadId = randomBytes(24).toString('hex')
    await beginUpload(context, {
      uploadId,
      bucket: request.bucket,
      birth,
      key: request.key,
      initiated: Date.now(),
      accessKeyId: accessKeyId(context),
      ...(owns && context.caller && { owner: canonicalId(context.caller.identity) }),
      asked: headersOfUpload(headers),
      ...attributes,
      checksum,
      tags,
      ...(acl && { acl }),
      storageClass,
      authorized,
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

/**
 * Reads the algorithm and its type. Types by algorithm:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 */
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
