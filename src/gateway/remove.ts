import type { GatewayFeatures } from './gateway.js'
import { whyUnfit } from './keys.js'
import { hasChildren, lookUp } from './look-up.js'
import { looking, type Tools } from './tools.js'

/**
 * See Gateway.remove. One name per call, because a call with several may stop early and still say success; and never a name that a legacy gateway
 * would take for a folder to empty: to it a final slash means the whole subtree, and an empty name the whole bucket.
 */
export async function remove(tools: Tools, features: GatewayFeatures, bucket: string, key: string): Promise<void> {
  if (key === '') return
  if (!features.anyKey && whyUnfit(key) !== undefined) return
  if (key.endsWith('/') && !features.exactRemove && !(await isEmptyFolder(looking(tools), features, bucket, key)))
    return
  try {
    await tools.session.call({
      method: 'web.RemoveObject',
      params: { bucketName: bucket, objects: [key] },
      headers: { [tools.names.header('date')]: new Date().toISOString().replace(/[-:]|\.\d+/g, '') },
      subject: { bucket, key },
    })
  } finally {
    tools.snapshots.changed(bucket, key)
  }
}

/** True when the gateway has a folder object of this name with nothing in it. */
async function isEmptyFolder(tools: Tools, features: GatewayFeatures, bucket: string, key: string): Promise<boolean> {
  if (features.pagedListing) {
    const result = await tools.session.call({
      method: 'web.ListObjects',
      params: { bucketName: bucket, prefix: key, marker: key, maxKeys: 1, delimiter: '' },
      subject: { bucket },
      repeatable: true,
    })
    const below = result.objects
    if (Array.isArray(below) && below.length > 0) return false
  } else if (await hasChildren(tools, bucket, key)) return false
  const entry = await lookUp(tools, features, bucket, key)
  return entry !== undefined && !entry.isPrefix
}
