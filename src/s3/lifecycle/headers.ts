import type { Context } from '../../api/context.js'
import type { ReplyHeaders } from '../../api/request.js'
import type { StoredObject } from '../../api/store.js'
import type { UploadRecord } from '../../api/uploads.js'
import type { LifecycleConfiguration } from './configuration.js'
import { abortionOf, candidateOf, expirationOf } from './rules.js'

type Of = Pick<Context, 'settings' | 'log'>

/**
 * Returns x-amz-expiration of the current object of a key: the date on which a lifecycle rule will remove it, and the
 * rule. Undefined if none will, or if the rules cannot be read, because the object is served nevertheless.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html#API_HeadObject_ResponseSyntax
 */
export async function expirationHeader(
  context: Of,
  bucket: string,
  object: Pick<StoredObject, 'key' | 'size' | 'lastModified' | 'tags'>,
): Promise<string | undefined> {
  const configuration = await rulesOf(context, bucket)
  if (!configuration) return undefined
  const due = expirationOf(configuration, candidateOf(object))
  return due && `expiry-date="${new Date(due.at).toUTCString()}", rule-id="${encoded(due.rule.id)}"`
}

/**
 * Returns x-amz-abort-date and x-amz-abort-rule-id of an upload: when a lifecycle rule will abort it, and the rule. A
 * rule whose id is not in ASCII is named as in x-amz-expiration. Empty as `expirationHeader` is undefined.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html#API_CreateMultipartUpload_ResponseSyntax
 */
export async function abortHeaders(
  context: Of,
  upload: Pick<UploadRecord, 'bucket' | 'key' | 'initiated'>,
): Promise<ReplyHeaders> {
  const configuration = await rulesOf(context, upload.bucket)
  const due = configuration && abortionOf(configuration, upload)
  if (!due) return {}
  const { id } = due.rule
  return {
    'x-amz-abort-date': new Date(due.at).toUTCString(),
    'x-amz-abort-rule-id': /^[\x20-\x7e]*$/.test(id) ? id : encoded(id),
  }
}

/** A half of a surrogate pair, which XML may have by its number, has no encoding. */
function encoded(id: string): string {
  return encodeURIComponent(id.toWellFormed())
}

async function rulesOf(context: Of, bucket: string): Promise<LifecycleConfiguration | undefined> {
  try {
    return await context.settings.get(bucket, 'lifecycle')
  } catch (err) {
    // The log of a request is made where it is asked for.
    context.log.debug({ err, bucket }, 'could not read the lifecycle rules of a bucket')
    return undefined
  }
}
