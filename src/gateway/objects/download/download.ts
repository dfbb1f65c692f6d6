import { type GatewayClient, lookupClient } from '../../client.js'
import { noSuchKey, unavailable } from '../../errors.js'
import type { ByteRange, Download, GatewayFeatures } from '../../gateway.js'
import { whyUnfit } from '../../keys.js'
import { downloadDirectly } from './download-directly.js'
import { downloadListed } from './download-listed.js'
import { resolveRange } from './range.js'
import { isReadable } from './request-object.js'
import { stat } from './stat.js'

/** Attempts before a download fails because the object keeps changing between listing and download. */
const ATTEMPTS = 3

/**
 * See Gateway.download. The way of a body from the gateway, from top to bottom:
 * 1. This file chooses between the two ways to download.
 * 2. `download-directly.ts` needs one call, on gateways that describe the object with its bytes (`objectHead`).
 *   `download-listed.ts` lists the object first (`stat.ts`) and checks that the download agrees with the listing.
 * 3. `request-object.ts` sends the GET or HEAD and translates refusals.
 * 4. `range.ts` computes the byte positions; `download-body.ts` delivers exactly these bytes to a sink.
 */
export async function download(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
): Promise<Download> {
  if (!features.anyKey && whyUnfit(key) !== undefined) throw noSuchKey(bucket, key)
  if (features.objectHead) {
    const direct = await downloadDirectly(client, features, bucket, key, range)
    if (direct) return direct
  }
  // A caller who may not read the object must not learn anything about it, not even whether it exists.
  if (client.account && !(await isReadable(client, bucket, key))) throw noSuchKey(bucket, key)
  let difference = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
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
