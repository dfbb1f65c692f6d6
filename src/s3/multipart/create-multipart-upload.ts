import { randomBytes } from 'node:crypto'
import { type ChecksumAlgorithm, isCombinable } from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { document, element } from '../../../common/xml.js'
import { headersOfUpload } from '../../access/required-actions.js'
import type { Context } from '../../api/context.js'
import type { ChecksumType } from '../../api/object-checksum.js'
import type { S3Request } from '../../api/request.js'
import type { UploadRecord } from '../../api/uploads.js'
import { canonicalId } from '../../auth/credentials.js'
import { xml } from '../../http/reply.js'
import { TAGGING, taggingOfHeader } from '../../http/tags.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { aclOfWrite } from '../access/acl-operations.js'
import { OBJECT_ACL_HEADERS } from '../access/acl-syntax.js'
import { abortHeaders } from '../lifecycle/headers.js'
import { checksumAlgorithmHeader, headerText, REDIRECT, readAttributes } from '../object/attributes.js'
import { askedEncryption, customerOf, ENCRYPTION_HEADERS, encryptionHeaders } from '../object/encryption.js'
import { admitClass, askedClass } from '../object/storage-class.js'
import { askedLock, LOCK_HEADERS } from '../versions/lock-headers.js'
import { accessKeyId, requireMayWrite } from './upload.js'

export const createMultipartUpload = defineOperation({
  name: 'CreateMultipartUpload',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html',
  partly:
    'aws:kms:dsse and a context of encryption are NotImplemented, as is object lock on a gateway that cannot lock objects, archive classes that no plugin offers InvalidStorageClass.',
  access: 'signed',
  action: 's3:PutObject',
  keeps: 'uploads',
  needs: { key: 'write' },
  on: {
    method: 'POST',
    resource: 'object',
    query: ['uploads'],
    headers: [TAGGING, REDIRECT, ...LOCK_HEADERS, ...ENCRYPTION_HEADERS, ...OBJECT_ACL_HEADERS],
    metadata: true,
  },
  async run(request, context) {
    const acl = await aclOfWrite(request, context)
    const checksum = readChecksum(request)
    const attributes = readAttributes(request.headers, context)
    const tags = taggingOfHeader(request.headers)
    const asked = askedEncryption(request, context)
    const lock = await askedLock({ headers: request.headers, bucket: request.bucket, key: request.key }, context)
    // The creation date is read first, so that the completion is refused if the bucket is replaced in between.
    const creationTime = await context.creationTimes.now(request.bucket)
    const owns = await requireMayWrite(context, request.bucket, request.key)
    if (tags) await context.checks.requireOwner(request.bucket, { action: 's3:PutObjectTagging', key: request.key })
    // Refuse a key that the gateway would refuse at the end before gigabytes of parts are sent.
    const why = await context.gateway.refusesKey(request.key)
    if (why !== undefined) throw new S3Error('InvalidArgument', { message: why, fields: { ArgumentName: 'key' } })
    const storageClass = askedClass(request.headers)
    const { bucket, key, headers } = request
    const { metadata } = attributes
    const authorized = await context.checks.authorize(metadata, { bucket, key })
    const described = { metadata, authorized, headers, encryption: asked }
    const write = { operation: 'CreateMultipartUpload', bucket, key, ...described } as const
    // Check admission to the storage class before gigabytes of parts are sent. The completion checks it again.
    const admitted = await admitClass(storageClass, write, context)
    await admitted?.dropped()
    // Command lines take an id that begins with "-", as base64url may, for an option.
    const uploadId = randomBytes(24).toString('hex')
    const encryption = await context.store.encryptionOfUpload({ bucket, key, uploadId }, asked)
    const initiated = Date.now()
    await beginUpload(context, {
      uploadId,
      bucket: request.bucket,
      birth: creationTime,
      key: request.key,
      initiated,
      accessKeyId: accessKeyId(context),
      ...(owns && context.caller && { owner: canonicalId(context.caller.identity) }),
      asked: headersOfUpload(headers),
      ...attributes,
      checksum,
      tags,
      ...(acl && { acl }),
      storageClass,
      authorized,
      ...(encryption && { encryption }),
      ...(lock && { lock }),
    })
    return xml(
      document(
        'InitiateMultipartUploadResult',
        element('Bucket', request.bucket) + element('Key', request.key) + element('UploadId', uploadId),
      ),
      {
        ...(checksum && { 'x-amz-checksum-algorithm': checksum.algorithm, 'x-amz-checksum-type': checksum.type }),
        ...encryptionHeaders({ encrypted: encryption }, customerOf(asked)),
        ...(await abortHeaders(context, { bucket, key, initiated })),
        ...admitted?.headers,
      },
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

/**
 * Records an upload, unless the account of the caller has as many under way as its quota at the gateway allows: then
 * throws QuotaExceeded. Servers that share a state count together.
 */
async function beginUpload(context: Context, upload: UploadRecord): Promise<void> {
  const { uploads } = context.state
  const account = context.caller && canonicalId(context.caller.identity)
  const most = account === undefined ? undefined : await context.gateway.uploadQuota()
  const { rights, policies, session } = context.caller?.identity ?? {}
  const byUser = rights || policies || session ? { byUser: true as const } : {}
  const record = { ...upload, ...(account !== undefined && { account, ...byUser }) }
  const present = await uploads.create(record, { most, logger: context })
  if (present !== undefined) throw exceeded(most ?? 0, present)
}

function exceeded(most: number, present: number): S3Error {
  return new S3Error('QuotaExceeded', {
    message: `The quota of the account is ${most} multipart uploads. It has ${present} under way: complete or abort some, or ask for a larger quota.`,
  })
}
