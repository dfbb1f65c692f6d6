import { S3Error } from '../../common/errors/s3-error.js'
import { quoted } from '../../common/etags.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { empty, type ReplyHeaders } from '../../response/reply.js'
import { OBJECT_ACL_HEADERS } from '../acl/acl-headers.js'
import { aclOfWrite } from '../acl/write-acl.js'
import { expirationHeader } from '../lifecycle/expiration-header.js'
import { checksumHeaders } from '../reading/object-headers.js'
import { requireSameBody } from '../storage-class/repeated-write.js'
import { admitClass, askedClass, writeAdmitted } from '../storage-class/storage-class.js'
import { TAGGING, taggingOfHeader } from '../tagging/tagging-headers.js'
import { readAttributes } from '../vocabulary/attributes.js'
import { requireBucket } from '../vocabulary/buckets.js'
import { causeOf } from '../vocabulary/cause.js'
import { writePrecondition } from '../vocabulary/write-conditions.js'

export const putObject = defineOperation({
  name: 'PutObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html',
  partly:
    'Encryption, object lock and website redirects are NotImplemented, archive classes that no plugin offers InvalidStorageClass.',
  access: 'anonymous',
  action: 's3:PutObject',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', headers: [TAGGING, ...OBJECT_ACL_HEADERS] },
  async run(request, context) {
    const acl = await aclOfWrite(request, context)
    // Rules of the gateway cannot grant everybody the right to tag.
    if (!context.caller && request.headers[TAGGING] !== undefined)
      await context.checks.requireOwner(request.bucket, { action: 's3:PutObjectTagging', key: request.key })
    if (request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined)
      throw new S3Error('MissingContentLength')
    // A body without a length is spooled to a file, up to the largest allowed size, so check first that the bucket
    // exists.
    if (request.body.length === undefined && context.caller) await requireBucket(context, request.bucket)
    const tags = taggingOfHeader(request.headers)
    const { bucket, key, headers } = request
    const attributes = readAttributes(headers, context)
    const precondition = writePrecondition(headers)
    const { metadata } = attributes
    const authorized = await context.checks.authorize(metadata, { bucket, key })
    const size = request.body.length
    const write = { operation: 'PutObject', bucket, key, metadata, authorized, headers, size } as const
    const admitted = await admitClass(askedClass(headers), write, context)
    const { result, headers: told } = await writeAdmitted(context, admitted, request, async (archive) => {
      if (admitted?.repeats) {
        await requireSameBody(request.body, admitted.repeats)
        return admitted.repeats
      }
      return context.store.put({
        bucket,
        key,
        source: request.body,
        attributes,
        tags,
        acl,
        archive,
        authorized,
        event: causeOf('ObjectCreated:Put', request, context),
        precondition,
        maxBytes: context.limits.maxPutBytes,
      })
    })
    const { etag, size: stored, lastModified, checksum } = result
    const answer = Object.assign({ etag: quoted(etag) }, told, checksumHeaders(checksum)) as ReplyHeaders
    answer['x-amz-expiration'] = await expirationHeader(context, bucket, { key, size: stored, lastModified, tags })
    return empty(answer)
  },
})
