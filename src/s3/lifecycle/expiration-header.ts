import type { StoredObject } from '../../objects/store.js'
import type { Context } from '../../server/context.js'
import { expirationOf } from './rules.js'

/**
 * Returns x-amz-expiration of an object: the date on which a lifecycle rule will remove it, and the rule. Undefined if
 * none will, or if the rules cannot be read, because the object is served nevertheless.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html#API_HeadObject_ResponseSyntax
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
    context.log.debug({ err, bucket }, 'could not read the lifecycle rules of a bucket')
    return undefined
  }
}
