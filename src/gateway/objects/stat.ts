import { S3Error, unless } from '../../../common/errors/s3-error.js'
import type { GatewayObject } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import type { Known } from '../../api/known-object.js'
import type { VersionRef } from '../../api/versions.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { nonsense } from '../errors.js'
import { isPartOfRoot, whyUnfit } from '../keys.js'
import { toObject } from '../listing/listing-scanner.js'
import { lookUp } from '../listing/look-up.js'
import { askForRecord, factsFromHeaders } from '../object-facts.js'
import { statKnown } from './known-object.js'
import { isReadable, request } from './request-object.js'
import { askForVersion, isOf, noSuchVersion } from './versions.js'

/** See Gateway.stat. */
export async function stat(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  ref?: VersionRef,
  onMarker?: (error: S3Error) => void,
  known?: Known,
): Promise<GatewayObject | undefined> {
  if (ref && !features.versions) {
    const current = await stat(client, features, bucket, key, undefined, undefined, known)
    if (current && isOf(current, ref)) return current
    if ('id' in ref && ref.id !== 'null') throw noSuchVersion(key, ref)
    return undefined
  }
  if (!features.anyKey && whyUnfit(key) !== undefined) return undefined
  if (features.objectHead) {
    const answer = await head(client, features, bucket, key, ref, onMarker)
    if (answer !== 'unknown') return answer
    // A listing has the current versions alone.
    if (ref) throw nonsense('does not describe a version of an object')
  }
  const described = known && (await statKnown(client, bucket, key, known))
  if (described) return described
  if (client.account && !(await isReadable(client, bucket, key))) return undefined
  const entry = await lookUp(lookupClient(client), features, bucket, key)
  if (entry && !entry.isPrefix) return toObject(features, entry)
  if (features.anyKey || !isPartOfRoot(key) || !(await isDownloaded(lookupClient(client), bucket, key)))
    return undefined
  const found = await lookUp(lookupClient(client), features, bucket, key, true)
  return found && !found.isPrefix ? toObject(features, found) : undefined
}

/** True when a download finds an object that the listing of a part of the root did not show. */
function isDownloaded(client: GatewayClient, bucket: string, key: string): Promise<boolean> {
  return unless('AccessDenied', isReadable(client, bucket, key), false)
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
  ref: VersionRef | undefined,
  onMarker: ((error: S3Error) => void) | undefined,
): Promise<GatewayObject | undefined | 'unknown'> {
  try {
    const asked = askForVersion(client.names, ref, askForRecord(client.names, features))
    const answer = await request(client, 'HEAD', { bucket, key }, asked)
    answer.drain()
    if (answer.status !== 200) return 'unknown'
    return (
      factsFromHeaders(client.names, features, answer.headers, key, Number(answer.headers['content-length'])) ??
      'unknown'
    )
  } catch (error) {
    if (!(error instanceof S3Error)) throw error
    if (error.code === 'NoSuchKey') {
      if (error.headers['x-amz-delete-marker'] !== undefined) onMarker?.(error)
      return undefined
    }
    if (error.code === 'NoSuchVersion' && ref && 'revision' in ref) return undefined
    throw error
  }
}
