import { randomBytes, randomUUID } from 'node:crypto'
import { formatTimestamp } from '../../../common/sigv4.js'
import type { WriteOrder } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import type { RemovalResult, VersionRemoval } from '../../api/versions.js'
import { InDoubt, leavesOpen } from '../calls/in-doubt.js'
import type { RpcCall, RpcResult } from '../calls/rpc-sender.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { nonsense, type Subject } from '../errors.js'
import { isPartOfRoot, whyUnfit } from '../keys.js'
import { hasChildren, lookUp, lookUpFolder } from '../listing/look-up.js'
import { openUpload } from './open-upload.js'
import { stat } from './stat.js'

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
  version?: VersionRemoval,
): Promise<RemovalResult> {
  if (key === '') return {}
  if (version && !features.versions) {
    if (version.id !== 'null') return {}
    return remove(client, features, bucket, key, order)
  }
  if (!features.anyKey && whyUnfit(key) !== undefined) return {}
  if (key.endsWith('/') && !features.exactRemove) await removeFolder(client, features, bucket, key, order)
  else return removalOf(await removeNamed({ client, features, order, version }, bucket, key))
  return {}
}

/** The context of one removal. */
interface Removal {
  readonly client: GatewayClient
  readonly features: GatewayFeatures
  readonly order: WriteOrder
  readonly version?: VersionRemoval | undefined
}

/**
 * Sends one web.RemoveObject call with one name. Throws S3Error, including WriteRefused and InDoubt.
 * @param key key of the object that the name stands for
 */
async function removeNamed(removal: Removal, bucket: string, name: string, key = name): Promise<RpcResult> {
  const { client, features, order, version } = removal
  const call = {
    method: 'web.RemoveObject',
    params: { ...paramsOf(bucket, name, features.writeFences ? order : undefined), ...versionParams(version) },
    headers: { [client.names.header('date')]: formatTimestamp(new Date()) },
    subject: { bucket, key },
  }
  order.ensure()
  try {
    return await (features.writeFences ? client.session.call(call) : removeUnordered(removal, call))
  } finally {
    client.snapshots.changed(bucket, key)
  }
}

function versionParams(version: VersionRemoval | undefined): object {
  if (!version) return {}
  return { versionId: version.id, ...(version.bypass && { bypass: true }), ...conditionParams(version) }
}

function conditionParams({ only }: VersionRemoval): object {
  if (!only) return {}
  if ('alone' in only) return { alone: true }
  const { noncurrentSince, newer } = only
  return { noncurrentSince, ...(newer > 0 && { newerNoncurrent: newer }) }
}

function removalOf({ versionId, deleteMarker }: RpcResult): RemovalResult {
  if (versionId === undefined) return {}
  if (typeof versionId !== 'string') throw nonsense('answered web.RemoveObject with a version id that is no text')
  return { versionId, ...(deleteMarker === true && { deleteMarker }) }
}

function paramsOf(bucketName: string, name: string, order: WriteOrder | undefined): object {
  const objects = [name]
  if (!order) return { bucketName, objects }
  const { fence, expected } = order
  const writeId = randomUUID()
  if (expected === undefined) return { bucketName, objects, fence, writeId }
  return { bucketName, objects, fence, writeId, expectedGeneration: expected ?? '' }
}

/** Throws also InDoubt: without an answer, the gateway may still carry out the removal. */
async function removeUnordered(
  { client, features, order: { logger } }: Removal,
  call: Omit<RpcCall, 'token'> & { readonly subject: Required<Subject> },
): Promise<RpcResult> {
  client.inDoubt.admit()
  let answer: Promise<unknown> = Promise.reject(new Error('the connection has ended'))
  answer.catch(() => {})
  const late = (outcome: Promise<unknown>) => {
    answer = outcome
  }
  try {
    return await client.session.call({ ...call, late })
  } catch (error) {
    if (!leavesOpen(error)) throw error
    const { bucket, key } = call.subject
    const answered = answer.then(() => undefined)
    const look = async () => {
      await stat(lookupClient(client), features, bucket, key)
      return undefined
    }
    const outcome = client.inDoubt.findOutcome(answered, look, { logger })
    throw new InDoubt(
      error,
      outcome.finally(() => client.snapshots.changed(bucket, key)),
    )
  }
}

/**
 * Replaces the final slash in the name of a folder object on MinIO with several drives (MinIO cmd/object-api-utils.go,
 * `globalDirSuffix`).
 */
const ERASURE_SUFFIX = '__XLDIR__'

/**
 * Removes the folder object `key` and nothing beneath it, on gateways that take a final slash for the whole subtree.
 * Throws S3Error.
 */
async function removeFolder(
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
  const attributes = { contentType: undefined, headers: {}, metadata: {} }
  await openUpload(client, bucket, last, 0, attributes).commit(order)
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
