import type { Download, GatewayObject } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { headerFacts } from '../object-facts.js'
import type { RestResponse } from '../transport/response.js'
import { disagreement } from './disagreement.js'
import { DownloadBody, type Span } from './download-body.js'
import { open } from './request-object.js'
import { stat } from './stat.js'

/** Last-Modified has whole seconds: an object younger than this may have been overwritten within the same second. */
const AMBIGUOUS_MS = 2000

/**
 * Downloads an object that the listing has described. When the download does not agree with the listing, resolves to
 * the difference, in words. Throws S3Error.
 * @param asked `performance.now()` when the listing was requested
 */
export async function downloadListed(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  listed: GatewayObject,
  asked: number,
  span: Span,
): Promise<Download | string> {
  const { key } = listed
  // Downloading the key of an empty folder object may return something that is not an object.
  if (key.endsWith('/') && listed.size === 0 && !features.anyKey) {
    return new DownloadBody(undefined, { object: { ...listed, headers: {}, metadata: {} }, span, ...whole(client) })
  }
  const response = await open(client, bucket, key)
  if (!response) return 'the object is gone'
  const wrong = disagreement(response, listed)
  if (wrong !== undefined) {
    response.destroy()
    return `the download has another ${wrong}`
  }
  const sinceAsked = performance.now() - asked
  if (
    isAmbiguous(response, sinceAsked) &&
    (await stat(lookupClient(client), features, bucket, key))?.revision !== listed.revision
  ) {
    response.destroy()
    return 'the object was overwritten within the same second'
  }
  const facts = headerFacts(client.names, response.headers, key, true)
  const { contentType, headers, metadata, writeId, encrypted } = facts
  const marks = { ...(writeId !== undefined && { writeId }), ...(encrypted && { encrypted }) }
  const object = { ...listed, contentType, headers, metadata, ...marks }
  return new DownloadBody(response, {
    ...whole(client),
    object,
    span,
    skip: span.first,
    surplus: listed.size - 1 - span.last,
  })
}

function whole(client: GatewayClient): { skip: number; surplus: number; idleMs: number } {
  return { skip: 0, surplus: 0, idleMs: client.rest.idleMs }
}

/**
 * True when the object was so young when it was listed, perhaps long before the download, that an overwrite since then
 * may not change Last-Modified. Both times come from the gateway's clock.
 */
function isAmbiguous(response: RestResponse, sinceAskedMs: number): boolean {
  const answered = Date.parse(response.headers.date ?? '')
  const modified = Date.parse(response.headers['last-modified'] ?? '')
  return !(answered - sinceAskedMs - modified >= AMBIGUOUS_MS)
}
