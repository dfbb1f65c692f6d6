import type { Gateway, Upload } from '../../api/gateway.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { withinDeadline } from '../../common/time.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { isResolvable } from '../keys.js'
import { isStagingBucket } from '../staging.js'
import { type GatewayUse, wrapGateway } from '../wrap-gateway.js'
import { type ExactPaths, PATHS_CHANGED } from './exact-paths.js'

/** How long `ready` waits for the finding, ms; what is found later is known then. */
const PATIENCE_MS = 1000

/**
 * The gateway as accounts may use it: without the keys that its paths cannot name, except that they can be removed, and
 * without the buckets of staged parts. Gateways that keep objects as files have no such keys. The buckets do not exist
 * for clients, jobs and plugins, and their names are taken.
 * @param staging `shown` to the server itself
 */
export function guardGateway(
  gateway: Gateway,
  client: GatewayClient,
  paths: ExactPaths,
  staging: 'hidden' | 'shown',
): Gateway {
  const by = lookupClient(client)
  const isHidden = (bucket: string) => staging === 'hidden' && isStagingBucket(bucket)
  const areExact = async () => !(await by.features.get(by.session)).anyKey || paths.has(by)
  async function checkKey(key: string | undefined): Promise<void> {
    if (key === undefined || !isResolvable(key) || (await areExact())) return
    throw new S3Error('InvalidArgument', { message: PATHS_CHANGED, fields: { Key: key } })
  }
  function checkBucket(bucket: string | undefined): void {
    if (bucket !== undefined && isHidden(bucket)) throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
  }
  const admitted = async ({ method, bucket, key }: GatewayUse): Promise<Gateway> => {
    checkBucket(bucket)
    // A call names the key to remove, in its body. So what was stored before the way changed can be removed.
    if (method !== 'remove') await checkKey(key)
    return gateway
  }
  return wrapGateway(admitted, {
    // Also the probe at the start, which neither fails by it nor waits long for it.
    async ready() {
      const problem = await gateway.ready()
      const exact = await withinDeadline(areExact(), PATIENCE_MS).catch(() => true)
      return problem ?? (exact ? undefined : PATHS_CHANGED)
    },
    async refusesKey(key) {
      await checkKey(key)
      return gateway.refusesKey(key)
    },
    upload(bucket, key, length, attributes) {
      checkBucket(bucket)
      const upload = gateway.upload(bucket, key, length, attributes)
      return isResolvable(key) ? checkedUpload(upload, () => checkKey(key)) : upload
    },
    listBuckets: async () => (await gateway.listBuckets()).filter(({ name }) => !isHidden(name)),
    bucketExists: async (bucket) => !isHidden(bucket) && gateway.bucketExists(bucket),
    async makeBucket(bucket) {
      if (isHidden(bucket)) throw new S3Error('BucketAlreadyExists', { fields: { BucketName: bucket } })
      await gateway.makeBucket(bucket)
    },
  })
}

function checkedUpload(upload: Upload, check: () => Promise<void>): Upload {
  return {
    async write(chunk) {
      await check()
      await upload.write(chunk)
    },
    async commit(order) {
      await check()
      return upload.commit(order)
    },
    get unsent() {
      return upload.unsent
    },
    abort: () => upload.abort(),
  }
}
