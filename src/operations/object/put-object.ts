import { S3Error } from '../../errors/s3-error.js'
import { expirationHeader } from '../../lifecycle/expiration-header.js'
import { ACL } from '../../policy/acl.js'
import { requireAclTrue } from '../../policy/apply-acl.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { TAGGING, taggingOfHeader } from '../../tagging/tagging-headers.js'
import { readAttributes } from '../common/attributes.js'
import { causeOf } from '../common/cause.js'
import { quoted } from '../common/etags.js'
import { checksumHeaders } from '../common/object-headers.js'
import { admitClass, askedClass, writeAdmitted } from '../common/storage-class.js'
import { writePrecondition } from '../common/write-conditions.js'

export const putObject = defineOperation({
  name: 'PutObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html',
  partly:
    'Encryption, object lock, grants and website redirects are NotImplemented, archive classes that no plugin offers InvalidStorageClass; checksums are CRC32, CRC32C, CRC64NVME, SHA1 and SHA256.',
  access: 'anonymous',
  on: { method: 'PUT', resource: 'object', headers: [TAGGING, ACL] },
  async run(request, context) {
    await requireAclTrue(request, context)
    // Policies for everybody have no right to tag.
    if (!context.caller && request.headers[TAGGING] !== undefined) throw new S3Error('AccessDenied')
    if (request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined)
      throw new S3Error('MissingContentLength')
    const tags = taggingOfHeader(request.headers)
    const { bucket, key, headers } = request
    const attributes = readAttributes(headers, context)
    const precondition = writePrecondition(headers)
    const { metadata } = attributes
    const write = { operation: 'PutObject', bucket, key, metadata, headers, size: request.body.length } as const
    const admitted = await admitClass(askedClass(headers), write, context)
    const { result, headers: told } = await writeAdmitted(context, admitted, request, (archive) =>
      context.store.put({
        bucket,
        key,
        source: request.body,
        attributes,
        tags,
        archive,
        event: causeOf('ObjectCreated:Put', request, context),
        precondition,
        maxBytes: context.limits.maxPutBytes,
      }),
    )
    return empty({
      ...told,
      etag: quoted(result.etag),
      ...checksumHeaders(result.checksum),
      'x-amz-expiration': await expirationHeader(context, request.bucket, { ...result, key: request.key, tags }),
    })
  },
})
