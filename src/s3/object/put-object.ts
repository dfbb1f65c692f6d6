import { S3Error } from '../../../common/errors/s3-error.js'
import { quoted } from '../../../common/etags.js'
import type { RequestBody } from '../../api/request.js'
import type { StoredObject } from '../../api/store.js'
import { empty } from '../../http/reply.js'
import { TAGGING, taggingOfHeader } from '../../http/tags.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { aclOfWrite } from '../access/acl-operations.js'
import { OBJECT_ACL_HEADERS } from '../access/acl-syntax.js'
import { requireBucket } from '../bucket/owner.js'
import { askedLock, LOCK_HEADERS } from '../versions/lock-headers.js'
import { causeOf, REDIRECT, readAttributes } from './attributes.js'
import { askedEncryption, ENCRYPTION_HEADERS } from './encryption.js'
import { checksumHeaders } from './object-headers.js'
import { admitClass, askedClass, writeAdmitted } from './storage-class.js'
import { writePrecondition } from './write-conditions.js'
import { writtenHeaders } from './written-headers.js'

export const putObject = defineOperation({
  name: 'PutObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html',
  partly:
    'aws:kms:dsse and a context of encryption are NotImplemented, as is object lock on a gateway that cannot lock objects, archive classes that no plugin offers InvalidStorageClass.',
  access: 'anonymous',
  action: 's3:PutObject',
  needs: { key: 'write' },
  on: {
    method: 'PUT',
    resource: 'object',
    headers: [TAGGING, REDIRECT, ...LOCK_HEADERS, ...ENCRYPTION_HEADERS, ...OBJECT_ACL_HEADERS],
    metadata: true,
  },
  async run(request, context) {
    const acl = await aclOfWrite(request, context)
    // Rules of the gateway cannot grant everybody the right to tag.
    if (!context.caller && request.headers[TAGGING] !== undefined)
      await context.checks.requireOwner(request.bucket, { action: 's3:PutObjectTagging', key: request.key })
    if (request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined)
      throw new S3Error('MissingContentLength')
    // A body without a length is spooled to a file, up to the largest allowed size, so check first that the bucket
    // exists. S3 refuses all such bodies; here only strangers must state the length.
    if (request.body.length === undefined) {
      if (!context.caller) throw new S3Error('MissingContentLength', { fields: { Reason: UNSIZED } })
      await requireBucket(context, request.bucket)
    }
    const tags = taggingOfHeader(request.headers)
    const { bucket, key, headers } = request
    const attributes = readAttributes(headers, context)
    const encryption = askedEncryption(request, context)
    const lock = await askedLock(request, context)
    const precondition = writePrecondition(headers)
    const { metadata } = attributes
    const authorized = await context.checks.authorize(metadata, { bucket, key })
    const size = request.body.length
    const write = { operation: 'PutObject', bucket, key, metadata, authorized, headers, size, encryption } as const
    const admitted = await admitClass(askedClass(headers), write, context)
    const { result, headers: classHeaders } = await writeAdmitted(context, admitted, request, async (archive) => {
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
        encryption,
        lock,
        event: causeOf('ObjectCreated:Put', request, context),
        precondition,
        maxBytes: context.limits.maxPutBytes,
      })
    })
    const { etag, checksum } = result
    const written = await writtenHeaders(context, { bucket, key, tags, encryption }, result)
    return empty({ etag: quoted(etag), ...classHeaders, ...checksumHeaders(checksum), ...written })
  },
})

const UNSIZED = 'An unsigned request needs Content-Length or, for aws-chunked bodies, x-amz-decoded-content-length.'

/**
 * For a PUT that an SDK repeats unchanged because the answer to the first one was lost: reads and verifies the body,
 * and stores nothing. Throws DuplicateRequest when the body differs from the stored one, which a signature over
 * UNSIGNED-PAYLOAD allows.
 */
async function requireSameBody(body: RequestBody, stored: StoredObject): Promise<void> {
  if ((body.length ?? stored.size) !== stored.size) throw otherBody()
  let received = 0
  const { md5, checksum } = await body.stream(
    (chunk) => {
      received += chunk.length
      if (received > stored.size) throw otherBody()
    },
    { md5: true, ...(stored.checksum && { checksum: stored.checksum.algorithm }) },
  )
  const { etag, encrypted, checksum: known } = stored
  // The ETag of one that is encrypted with a named key, or with a key of the client, is no digest.
  const hasChecksum = encrypted && known && known.algorithm === checksum?.algorithm && known.value === checksum.value
  if (received !== stored.size || (md5?.toString('hex') !== etag && !hasChecksum)) throw otherBody()
}

function otherBody(): S3Error {
  return new S3Error('DuplicateRequest', {
    message:
      'This very request has been carried out already, with another body. To store this one, sign the request anew.',
  })
}
