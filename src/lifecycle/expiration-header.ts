import type { Context } from '../context.js'
import type { StoredObject } from '../store/store.js'
import { expirationOf } from './rules.js'

/**
 * x-amz-expiration of an object: when a lifecycle rule will remove it, and which. Undefined when none will, and when that cannot be read: an object is served all the
 * same. https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html#API_HeadObject_ResponseSyntax
 */
export async function expirationHeader(
  context: Pick<Context, 'settings' | 'log'>,
  bucket: string,
  object: Pick<StoredObject, 'key' | 'size' | 'lastModified' | 'tags'>,
): Promise<string | undefined> {
  try {
    const configuration = await context.settings.get(bucket, 'lifecycle')
    if (!configuration) return undefined
    const due = expirationOf(configuration, {
      key: object.key,
      size: object.size,
      lastModified: Date.parse(object.lastModified),
      tags: object.tags ?? [],
    })
    return due && `expiry-date="${new Date(due.at).toUTCString()}", rule-id="${encodeURIComponent(due.rule.id)}"`
  } catch (err) {
    context.log.debug({ err, bucket }, 'the lifecycle rules of a bucket could not be read')
    return undefined
  }
}
