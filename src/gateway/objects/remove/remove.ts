import type { GatewayClient } from '../../client.js'
import type { GatewayFeatures, WriteOrder } from '../../gateway.js'
import { whyUnfit } from '../../keys.js'
import { removeFolder } from './remove-folder.js'
import { removeNamed } from './remove-named.js'

/**
 * See Gateway.remove. Sends one name per call, because a call with several names may stop early and still report
 * success. Never sends a name that a legacy gateway takes for a folder to empty: a final slash means the whole subtree
 * there, and an empty name the whole bucket.
 */
export async function remove(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  order: WriteOrder,
): Promise<void> {
  if (key === '') return
  if (!features.anyKey && whyUnfit(key) !== undefined) return
  if (key.endsWith('/') && !features.exactRemove) await removeFolder(client, features, bucket, key, order)
  else await removeNamed({ client, features, order }, bucket, key)
}
