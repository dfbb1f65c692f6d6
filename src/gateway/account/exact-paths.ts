import { randomBytes } from 'node:crypto'
import type { Gateway, Upload } from '../../api/gateway.js'
import { CachedAnswer } from '../../common/cached-answer.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import { withinDeadline } from '../../common/time.js'
import { httpFailure } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { translate } from '../errors.js'
import { isResolvable } from '../keys.js'
import { request } from '../objects/object-request.js'
import { PutRequest } from '../objects/put-request.js'
import { isStagingBucket } from '../staging.js'
import { type GatewayUse, wrapGateway } from '../wrap-gateway.js'

const CHANGED =
  'The object gateway, or a proxy before it, resolves "." and ".." or joins "//" in paths, so that a key with them would reach another object: such keys are refused.'

/** Time for which a finding is cached, ms: proxies are replaced without a restart of this server. */
const VALID_MS = 5 * 60_000

/** How long `ready` waits for the finding, ms; what is found later is known then. */
const PATIENCE_MS = 1000

/** Longest key of a gateway that has the feature `any-key`, bytes. */
const MAX_KEY_BYTES = 1024

/** One byte too long for the gateway, and short enough for it once anything has cleaned the path. */
const PROBE_END = '/./y/..//z'
const PROBE = 'x'.repeat(MAX_KEY_BYTES + 1 - PROBE_END.length) + PROBE_END

/**
 * Finds out whether paths reach the gateway as they are sent: asks to download and to upload a key that is too long for
 * the gateway, and not so if something on the way has resolved its elements `.`, `..` and `//`. Nothing can be stored:
 * no gateway has the bucket.
 */
export class ExactPaths {
  readonly #log: Logger
  readonly #cached: CachedAnswer<boolean>

  constructor(log: Logger, now: () => number) {
    this.#log = log
    this.#cached = new CachedAnswer(VALID_MS, now)
  }

  /** Throws S3Error when the gateway does not answer. */
  has(client: GatewayClient): Promise<boolean> {
    return this.#cached.get(() => this.#ask(client))
  }

  async #ask(client: GatewayClient): Promise<boolean> {
    const bucket = `dealgate-${randomBytes(8).toString('hex')}`
    const exact = (await downloads(client, bucket)) && (await uploads(client, bucket))
    const before = this.#cached.last
    if (!exact && before !== false) this.#log.warn(CHANGED)
    if (exact && before === false) this.#log.info('paths reach the object gateway as they are sent again')
    return exact
  }
}

async function downloads(client: GatewayClient, bucket: string): Promise<boolean> {
  try {
    const response = await request(client, 'GET', { bucket, key: PROBE })
    response.destroy()
    return false
  } catch (error) {
    return isTooLong(error)
  }
}

function uploads({ rest, names, session }: GatewayClient, bucket: string): Promise<boolean> {
  return session.withLogin(async (token) => {
    const headers = { 'content-length': 0, ...(token !== undefined && { authorization: `Bearer ${token}` }) }
    const put = new PutRequest(rest.put(names.uploadPath(bucket, PROBE), headers, true), rest.idleMs)
    put.end()
    const answer = await put.answered(rest.timeoutMs).catch((error: unknown) => {
      throw translate({ kind: 'transport', error }, {})
    })
    return answer.status >= 300 && isTooLong(translate(httpFailure(names, answer), { bucket, key: PROBE }))
  })
}

/** Throws an error that says nothing about the path. */
function isTooLong(error: unknown): boolean {
  if (!(error instanceof S3Error) || error.status >= 500) throw error
  return error.code === 'KeyTooLongError'
}

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
    throw new S3Error('InvalidArgument', { message: CHANGED, fields: { Key: key } })
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
      return problem ?? (exact ? undefined : CHANGED)
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
