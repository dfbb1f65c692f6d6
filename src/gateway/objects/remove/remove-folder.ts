import { randomBytes } from 'node:crypto'
import { type GatewayClient, lookupClient } from '../../client.js'
import type { GatewayFeatures, WriteOrder } from '../../gateway.js'
import { isPartOfRoot } from '../../keys.js'
import { hasChildren, lookUp, lookUpFolder } from '../../listing/look-up.js'
import { upload } from '../upload/upload.js'
import { type Removal, removeNamed } from './remove-named.js'

/**
 * Replaces the final slash in the name of a folder object on MinIO with several drives (MinIO cmd/object-api-utils.go,
 * `globalDirSuffix`).
 */
const ERASURE_SUFFIX = '__XLDIR__'

/**
 * Removes the folder object `key` and nothing beneath it, on gateways that take a final slash for the whole subtree.
 * Throws S3Error.
 */
export async function removeFolder(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  order: WriteOrder,
): Promise<void> {
  const removal = { client, features, order }
  if (features.pagedListing) {
    if (await isEmptyFolder(lookupClient(client), features, bucket, key)) await removeNamed(removal, bucket, key)
    return
  }
  const folder = await lookUpFolder(lookupClient(client), bucket, key, isPartOfRoot(key))
  if (folder?.kept === 'as-directory') await removeDirectory(removal, bucket, key)
  else if (folder?.kept === 'beside-directory') await removeBeside(removal, bucket, key)
  else if (folder && !(await hasChildren(lookupClient(client), bucket, key))) await removeNamed(removal, bucket, key)
}

/**
 * Stores an object in the empty directory and removes it: the gateway then removes the directory too (MinIO
 * cmd/fs-v1-helpers.go, `deleteFile`). It would not remove an empty directory by its name.
 */
async function removeDirectory(removal: Removal, bucket: string, key: string): Promise<void> {
  const last = `${key}${randomBytes(6).toString('base64url')}`
  const { client, order } = removal
  await upload(client, bucket, last, 0, { contentType: undefined, headers: {}, metadata: {} }).commit(order)
  await removeNamed(removal, bucket, last)
  // MinIO with several drives before RELEASE.2021-06-17 lists the folder object like a directory but keeps it beside
  // one.
  const left = await lookUpFolder(lookupClient(client), bucket, key, isPartOfRoot(key))
  if (left) await removeNamed(removal, bucket, `${key.slice(0, -1)}${ERASURE_SUFFIX}`, key)
}

/**
 * Removes the folder object by its name on the drives, which keeps the folder's content. Where the gateway does not
 * know that name, removes it by its slash, if the folder is empty.
 */
async function removeBeside(removal: Removal, bucket: string, key: string): Promise<void> {
  const { client } = removal
  await removeNamed(removal, bucket, `${key.slice(0, -1)}${ERASURE_SUFFIX}`, key)
  const left = await lookUpFolder(lookupClient(client), bucket, key, isPartOfRoot(key))
  if (left && !(await hasChildren(lookupClient(client), bucket, key))) await removeNamed(removal, bucket, key)
}

/** True when a gateway with paged listings holds a folder object of this name with nothing in it. */
async function isEmptyFolder(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
): Promise<boolean> {
  const result = await client.session.call({
    method: 'web.ListObjects',
    params: { bucketName: bucket, prefix: key, marker: key, maxKeys: 1, delimiter: '' },
    subject: { bucket },
    repeatable: true,
  })
  const below = result.objects
  if (Array.isArray(below) && below.length > 0) return false
  const entry = await lookUp(client, features, bucket, key)
  return entry !== undefined && !entry.isPrefix
}
