import { hash } from 'node:crypto'
import type { Logging } from '../../../common/log.js'
import type { GatewayObject, UploadResult } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import { UNRESOLVED } from '../calls/in-doubt.js'
import type { GatewayClient } from '../client.js'
import { unavailable } from '../errors.js'
import { headerFacts, MARKER_REVISION, unconfirmedRevision, writeMarkOf } from '../object-facts.js'
import { MAX_DRAIN_BYTES, readAll } from '../transport/response.js'
import { disagreement } from './disagreement.js'
import { open } from './request-object.js'
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

/** A write whose bytes the gateway may have. */
interface Written {
  readonly bucket: string
  readonly key: string
  readonly writeId: string
  /** See `digestOf`. */
  readonly digest: string | undefined
  /** The gateway has stored it: what it stores from now on is another object. */
  readonly acknowledged?: true
}

/**
 * SHA-256 of a body that is compared with its download, base64. Undefined for a body whose download would not be read
 * to its end otherwise: comparing the others costs no traffic.
 */
export function digestOf(body: Buffer): string | undefined {
  return body.length > MAX_DRAIN_BYTES ? undefined : hash('sha256', body, 'base64')
}

/**
 * Finds what the gateway has stored of this write, on gateways whose answer to an upload does not describe the object.
 * Resolves undefined when the object is gone or another. Lists the object first and downloads it afterwards: if that
 * still has the id of this write, the listing described these bytes and not those of a later write. Throws S3Error when
 * the gateway does not show the object.
 */
export async function locate(
  client: GatewayClient,
  features: GatewayFeatures,
  written: Written,
): Promise<UploadResult | undefined> {
  const { bucket, key, digest, acknowledged } = written
  let first: string | undefined
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const listed = await stat(client, features, bucket, key)
    if (!listed) return undefined
    // A folder has no mark and is the same whichever write made it.
    if (key.endsWith('/') && !features.anyKey) return { revision: MARKER_REVISION, lastModified: listed.lastModified }
    first ??= listed.revision
    // Bytes that are not compared may be those of another program, with a copy of the id.
    if (acknowledged && digest === undefined && listed.revision !== first) return undefined
    const found = await downloaded(client, listed, written)
    if (found === 'another') return undefined
    if (found === 'not as listed') continue
    const { mark } = found
    if (mark === undefined) return resultOf(listed)
    // Another program may have copied the id to other bytes since the listing: the mark is theirs then. A body without
    // a digest was not compared.
    const isOwn = digest !== undefined || (await stat(client, features, bucket, key))?.revision === listed.revision
    return isOwn ? { ...resultOf(listed), mark } : resultOf(listed)
  }
  throw unavailable(undefined, 'The object gateway does not show the object that it stored. Try again.')
}

/**
 * What a download says of the listed object: the mark of this write, or `another` when the object is gone, another
 * client wrote it, or its bytes are not those of this write. `not as listed`: it was overwritten since, or something
 * other than the gateway answered.
 */
async function downloaded(
  client: GatewayClient,
  listed: GatewayObject,
  { bucket, writeId, digest }: Written,
): Promise<{ readonly mark: string | undefined } | 'another' | 'not as listed'> {
  const response = await open(client, bucket, listed.key)
  if (!response) return 'another'
  if (disagreement(response, listed) !== undefined) {
    response.destroy()
    return 'not as listed'
  }
  const { headers } = response
  if (headerFacts(client.names, headers, listed.key, true).writeId !== writeId) {
    response.drain()
    return 'another'
  }
  const found = { mark: writeMarkOf(writeId, headers) }
  if (digest === undefined) {
    response.drain()
    return found
  }
  const body = await readAll(response, MAX_DRAIN_BYTES, client.rest.idleMs).catch((error) => {
    throw unavailable(error)
  })
  if (body?.length !== listed.size) return 'not as listed'
  return digestOf(body) === digest ? found : 'another'
}

interface Acknowledged extends Written {
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
  { logger, ...written }: Acknowledged,
): Promise<UploadResult> {
  const { key, writeId } = written
  const now = new Date().toISOString()
  const look = () => locate(client, features, { ...written, acknowledged: true })
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
