import type { ByteRange, Download } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import type { Known } from '../../api/known-object.js'
import type { VersionRef } from '../../api/versions.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { nonsense, noSuchKey, unavailable } from '../errors.js'
import { whyUnfit } from '../keys.js'
import { askForRecord, factsFromHeaders } from '../object-facts.js'
import type { RestResponse } from '../transport/response.js'
import { DownloadBody, invalidRange, parseContentRange, rangeHeader, resolveRange } from './download-body.js'
import { downloadListed } from './download-listed.js'
import { downloadKnown } from './known-object.js'
import { isReadable, request } from './request-object.js'
import { stat } from './stat.js'
import { askForVersion, isOf, noSuchVersion } from './versions.js'

/** Attempts before a download fails because the object keeps changing between listing and download. */
const MAX_ATTEMPTS = 3

/**
 * See Gateway.download. Needs one call on gateways that describe the object with its bytes (`objectHead`), and where
 * the bytes are those of a record. Otherwise it lists the object first and checks that the download agrees with the
 * listing.
 */
export async function download(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
  ref?: VersionRef,
  known?: Known,
): Promise<Download> {
  if (ref && !features.versions) {
    const current = await download(client, features, bucket, key, range, undefined, known)
    if (isOf(current.object, ref)) return current
    current.discard()
    throw noSuchVersion(key, ref)
  }
  if (!features.anyKey && whyUnfit(key) !== undefined) throw noSuchKey(bucket, key)
  if (features.objectHead) {
    const direct = await downloadDirectly(client, features, bucket, key, range, ref)
    if (direct) return direct
  }
  const direct = known && (await downloadKnown(client, bucket, key, range, known))
  if (direct) return direct
  // A caller who may not read the object must not learn anything about it, not even whether it exists.
  if (client.account && !(await isReadable(client, bucket, key))) throw noSuchKey(bucket, key)
  let difference = ''
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const asked = performance.now()
    const listed = await stat(lookupClient(client), features, bucket, key)
    if (!listed) throw noSuchKey(bucket, key)
    const span = resolveRange(range, listed.size)
    const found = await downloadListed(client, features, bucket, listed, asked, span)
    if (typeof found !== 'string') return found
    difference = found
  }
  const cause = new Error(`the listing and the download differ: ${difference}`)
  throw unavailable(cause, 'The object is being changed, or the object gateway sends something else. Try again.')
}

/**
 * Downloads with one call, which also describes the object. Resolves undefined when the answer does not describe it.
 * Throws S3Error.
 */
async function downloadDirectly(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
  ref: VersionRef | undefined,
): Promise<Download | undefined> {
  // A Range header cannot express "the last 0 bytes".
  const asked = askForVersion(client.names, ref, askForRecord(client.names, features))
  if (range && !('suffix' in range && range.suffix === 0)) asked.range = rangeHeader(range)
  const response = await request(client, 'GET', { bucket, key }, asked)
  try {
    return readDirect(client, features, key, range, response)
  } catch (error) {
    response.destroy()
    throw error
  }
}

function readDirect(
  client: GatewayClient,
  features: GatewayFeatures,
  key: string,
  range: ByteRange | undefined,
  response: RestResponse,
): Download | undefined {
  const contentRange = response.headers['content-range']
  if (response.status === 416) {
    response.drain()
    const size = /^bytes \*\/(\d+)$/.exec(contentRange ?? '')?.[1]
    if (size === undefined) throw nonsense('refused a range without telling the size')
    throw invalidRange(Number(size))
  }
  const sent = response.status === 206 ? parseContentRange(contentRange) : undefined
  const length = Number(response.headers['content-length'] ?? Number.NaN)
  if (response.status === 206 && !sent) throw nonsense('answered a range without saying which')
  const size = sent?.size ?? length
  const object = factsFromHeaders(client.names, features, response.headers, key, size)
  if (!object || !Number.isSafeInteger(size)) {
    response.destroy()
    return undefined
  }
  const span = resolveRange(range, size)
  const from = sent?.first ?? 0
  const to = sent?.last ?? size - 1
  if (length !== to - from + 1 || span.first < from || span.last > to)
    throw nonsense('answered with another range than was asked for')
  return new DownloadBody(response, {
    object,
    span,
    skip: span.first - from,
    surplus: to - span.last,
    idleMs: client.rest.idleMs,
  })
}
