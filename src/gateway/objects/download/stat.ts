import { S3Error } from '../../../common/errors/s3-error.js'
import { type GatewayClient, lookupClient } from '../../client.js'
import type { GatewayFeatures, GatewayObject } from '../../gateway.js'
import { isPartOfRoot, whyUnfit } from '../../keys.js'
import { toObject } from '../../listing/list-entry.js'
import { lookUp } from '../../listing/look-up.js'
import { factsFromHeaders } from '../../object-facts.js'
import { isReadable, request } from './request-object.js'

/** See Gateway.stat. */
export async function stat(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
): Promise<GatewayObject | undefined> {
  if (!features.anyKey && whyUnfit(key) !== undefined) return undefined
  if (features.objectHead) {
    const answer = await head(client, features, bucket, key)
    if (answer !== 'unknown') return answer
  }
  if (client.account && !(await isReadable(client, bucket, key))) return undefined
  const entry = await lookUp(lookupClient(client), features, bucket, key)
  if (entry && !entry.isPrefix) return toObject(features, entry)
  if (features.anyKey || !isPartOfRoot(key) || !(await isDownloaded(lookupClient(client), bucket, key)))
    return undefined
  const found = await lookUp(lookupClient(client), features, bucket, key, true)
  return found && !found.isPrefix ? toObject(features, found) : undefined
}

/** True when a download finds an object that the listing of a part of the root did not show. */
async function isDownloaded(client: GatewayClient, bucket: string, key: string): Promise<boolean> {
  try {
    return await isReadable(client, bucket, key)
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}

/**
 * Describes an object by a HEAD request. Resolves `unknown` when the answer does not describe an object although the
 * gateway announced that it would.
 */
async function head(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
): Promise<GatewayObject | undefined | 'unknown'> {
  try {
    const answer = await request(client, 'HEAD', { bucket, key })
    answer.drain()
    if (answer.status !== 200) return 'unknown'
    return (
      factsFromHeaders(client.names, features, answer.headers, key, Number(answer.headers['content-length'])) ??
      'unknown'
    )
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchKey') return undefined
    throw error
  }
}
