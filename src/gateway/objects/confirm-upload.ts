import type { Logging } from '../../../common/log.js'
import type { GatewayObject, UploadResult } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import { UNRESOLVED } from '../calls/in-doubt.js'
import type { GatewayClient } from '../client.js'
import { unavailable } from '../errors.js'
import { MARKER_REVISION, unconfirmedRevision } from '../object-facts.js'
import { writerOf } from './download-listed.js'
import { stat } from './stat.js'

export function resultOf({ revision, lastModified, etag, checksum, versionId }: GatewayObject): UploadResult {
  // Most answers, without spreads, which cost more than all else here.
  if (etag !== undefined && versionId === undefined) {
    return checksum ? { revision, lastModified, etag, checksum } : { revision, lastModified, etag }
  }
  const version = versionId === undefined ? {} : { versionId }
  return { revision, lastModified, ...(etag === undefined ? {} : { etag }), ...(checksum && { checksum }), ...version }
}

/** Attempts before the search fails because the object keeps changing. */
const MAX_ATTEMPTS = 3

/**
 * Finds what the gateway has stored of this write, on gateways whose answer to an upload does not describe the object.
 * Resolves undefined when the object is gone or another. Lists the object first and reads its mark afterwards: if the
 * mark is still that of this write, the listing described these bytes and not those of a later write. Throws S3Error
 * when the gateway does not show the object.
 */
export async function locate(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  writeId: string,
): Promise<UploadResult | undefined> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const listed = await stat(client, features, bucket, key)
    if (!listed) return undefined
    // A folder has no mark and is the same whichever write made it.
    if (key.endsWith('/') && !features.anyKey) return { revision: MARKER_REVISION, lastModified: listed.lastModified }
    const found = await writerOf(client, bucket, listed)
    if (found === undefined) continue
    if (found?.writeId !== writeId) return undefined
    return { ...resultOf(listed), mark: found.mark }
  }
  throw unavailable(undefined, 'The object gateway does not show the object that it stored. Try again.')
}

interface Acknowledged {
  readonly bucket: string
  readonly key: string
  readonly writeId: string
  /** Logs the lines about the write. */
  readonly logger: Logging | undefined
}

/**
 * Like `locate`, for an upload that the gateway has acknowledged: the object is stored, even if the gateway cannot show
 * it now.
 */
export async function confirm(
  client: GatewayClient,
  features: GatewayFeatures,
  { bucket, key, writeId, logger }: Acknowledged,
): Promise<UploadResult> {
  const now = new Date().toISOString()
  const look = () => locate(client, features, bucket, key, writeId)
  try {
    const superseded = key.endsWith('/') && !features.anyKey ? MARKER_REVISION : `superseded/${writeId}`
    return (await look()) ?? { revision: superseded, lastModified: now }
  } catch (err) {
    const confirmed = client.inDoubt
      .findOutcome(Promise.reject(err), look, { logger })
      .then((found) => (found === UNRESOLVED ? undefined : found))
    return { revision: unconfirmedRevision(writeId), lastModified: now, confirmed, problem: err }
  }
}
