import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { S3Error, unless } from '../../../common/errors/s3-error.js'
import { isRecord } from '../../../common/json.js'
import type { MaybePromise } from '../../../common/maybe-promise.js'
import { withinDeadline } from '../../../common/time.js'
import type { Gateway, GatewayBucket, KeptRecord, Upload } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import { encodePath } from '../brand.js'
import { restCall } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { nonsense } from '../errors.js'
import { isResolvable, refusal } from '../keys.js'
import { listPage } from '../listing/listing.js'
import { requireBucket } from '../listing/look-up.js'
import { isTime } from '../object-facts.js'
import { download } from '../objects/download.js'
import { openUpload } from '../objects/open-upload.js'
import { remove } from '../objects/remove.js'
import { stat } from '../objects/stat.js'
import { gatewayVersions, notLocked } from '../objects/versions.js'
import { isStagingBucket } from '../staging.js'
import { type GatewayUse, wrapGateway } from '../wrap-gateway.js'
import { type ExactPaths, PATHS_CHANGED } from './exact-paths.js'
import type { AccountSource } from './log-in.js'
import { hiddenAccess, listPolicies, setPolicy } from './policies.js'
import { gatewayQuotas } from './quotas.js'
import type { Session } from './session.js'

/**
 * The gateway as the account of `client.session` sees it.
 * @param anonymous a client without a log-in, used to find out what everyone may do
 */
export function accountGateway(client: GatewayClient, anonymous: GatewayClient): Gateway {
  const features = () => client.features.get(client.session)
  const able = <T>(use: (features: GatewayFeatures) => Promise<T>): Promise<T> => {
    const { known } = client.features
    return known ? use(known) : features().then(use)
  }
  return {
    features,
    listBuckets: () => listBuckets(client),
    bucketExists: (bucket) => bucketExists(client, bucket),
    makeBucket: (bucket, { lock } = {}) => changeBucket(client, 'web.MakeBucket', bucket, lock ? { lock } : {}),
    deleteBucket: (bucket) => changeBucket(client, 'web.DeleteBucket', bucket),
    list: (bucket, query) =>
      able((can) => listPage({ source: client, features: can, isMarker: client.isMarker }, bucket, query)),
    stat: (bucket, key, ref, onMarker, known) => able((can) => stat(client, can, bucket, key, ref, onMarker, known)),
    download: (bucket, key, range, ref, known) => able((can) => download(client, can, bucket, key, range, ref, known)),
    refusesKey: (key) => able(async (can) => (can.anyKey ? undefined : refusal(key))),
    upload: (bucket, key, length, attributes) => openUpload(client, bucket, key, length, attributes),
    remove: (bucket, key, order, version) => able((can) => remove(client, can, bucket, key, order, version)),
    keepRecord: (bucket, key, record) => keepRecord(client.session, bucket, key, record),
    listPolicies: (bucket) => listPolicies(client.session, bucket),
    hiddenAccess: (bucket, entries, places) => hiddenAccess(client, anonymous, bucket, entries, places),
    setPolicy: (bucket, prefix, policy) => setPolicy(client.session, bucket, prefix, policy),
    presignedGet: (bucket, key, expirySeconds, host) =>
      presignedGet(client.session, { bucket, key, expirySeconds, host }),
    call: (call) => restCall(client, call),
    ...gatewayVersions(client),
    ...gatewayQuotas(client),
    async ready() {
      await client.features.ask(client.session)
      // MinIO with several drives accepts log-ins and describes itself before it can read its drives.
      await listBuckets(client)
      return undefined
    },
  }
}

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
  const admitted = ({ method, bucket, key }: GatewayUse): MaybePromise<Gateway> => {
    checkBucket(bucket)
    // A call names the key to remove, in its body. So what was stored before the way changed can be removed.
    const checked = method !== 'remove' && key !== undefined && isResolvable(key)
    return checked ? checkKey(key).then(() => gateway) : gateway
  }
  return wrapGateway(admitted, {
    features: () => gateway.features(),
    // The probe at the start calls this, too: it neither fails because of the paths nor waits long for the check.
    async ready() {
      const problem = await gateway.ready()
      const exact = await withinDeadline(areExact(), PATIENCE_MS).catch(() => true)
      return problem ?? (exact ? undefined : PATHS_CHANGED)
    },
    async refusesKey(key) {
      await checkKey(key)
      return gateway.refusesKey(key)
    },
    async download(bucket, key, range, ref, known) {
      checkBucket(bucket)
      if (isResolvable(key)) await checkKey(key)
      return gateway.download(bucket, key, range, ref, known)
    },
    upload(bucket, key, length, attributes) {
      checkBucket(bucket)
      const upload = gateway.upload(bucket, key, length, attributes)
      return isResolvable(key) ? checkedUpload(upload, () => checkKey(key)) : upload
    },
    listBuckets: async () => (await gateway.listBuckets()).filter(({ name }) => !isHidden(name)),
    bucketExists: async (bucket) => !isHidden(bucket) && gateway.bucketExists(bucket),
    async makeBucket(bucket, options) {
      if (isHidden(bucket)) throw new S3Error('BucketAlreadyExists', { fields: { BucketName: bucket } })
      await gateway.makeBucket(bucket, options)
    },
  })
}

function checkedUpload(upload: Upload, check: () => Promise<void>): Upload {
  return {
    async write(chunk, release) {
      await check()
      await upload.write(chunk, release)
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

async function listBuckets(client: GatewayClient): Promise<GatewayBucket[]> {
  const result = await client.session.call({ method: 'web.ListBuckets', params: {}, repeatable: true })
  const buckets = result.buckets ?? []
  if (!Array.isArray(buckets)) throw nonsense('answered web.ListBuckets without a list')
  return buckets.map((bucket: unknown) => {
    if (isRecord(bucket) && typeof bucket.name === 'string' && isTime(bucket.creationDate)) {
      return { name: bucket.name, creationDate: bucket.creationDate }
    }
    throw nonsense('answered web.ListBuckets with a bucket that has no name or time')
  })
}

async function changeBucket(
  client: GatewayClient,
  method: string,
  bucket: string,
  more: { readonly lock?: true | undefined } = {},
): Promise<void> {
  if (more.lock && !(await client.features.get(client.session)).locks) throw notLocked('Object lock')
  try {
    await client.session.call({ method, params: { bucketName: bucket, ...more }, subject: { bucket } })
  } finally {
    client.snapshots.bucketChanged(bucket)
  }
}

async function bucketExists(client: GatewayClient, bucket: string): Promise<boolean> {
  return unless(
    'NoSuchBucket',
    requireBucket(client, bucket).then(() => true),
    false,
  )
}

/** Most key pairs with a view. A view that is in use stays with its user. */
const MAX_VIEWS = 1000

/** Creates one view per account and keeps it; the least recently used one is evicted. */
export class Views<View extends {}> {
  readonly #create: (account: AccountSource) => View
  readonly #bySource = new WeakMap<() => unknown, View>()
  readonly #byKeys: LRUCache<string, View>

  constructor(create: (account: AccountSource) => View, max = MAX_VIEWS) {
    this.#create = create
    this.#byKeys = new LRUCache({ max })
  }

  get(account: AccountSource): View {
    if (typeof account === 'function') {
      const known = this.#bySource.get(account) ?? this.#create(account)
      this.#bySource.set(account, known)
      return known
    }
    const id = createHash('sha256')
      .update(JSON.stringify([account.accessKey, account.secretKey]))
      .digest('base64')
    const known = this.#byKeys.get(id) ?? this.#create(account)
    this.#byKeys.set(id, known)
    return known
  }
}

/** See Gateway.keepRecord. */
async function keepRecord(session: Session, bucket: string, key: string, kept: KeptRecord): Promise<void> {
  const { revision: generation, record, fence } = kept
  await session.call({
    method: 'web.SetObjectRecord',
    params: { bucketName: bucket, objectName: key, generation, fence, record },
    subject: { bucket, key },
    repeatable: true,
  })
}

interface LinkRequest {
  readonly bucket: string
  readonly key: string
  /** 1 to 604,800. The gateway silently uses seven days for any other value. */
  readonly expirySeconds: number
  readonly host: string
}

/** See Gateway.presignedGet. */
async function presignedGet(session: Session, request: LinkRequest): Promise<string> {
  const { bucket, key, expirySeconds, host } = request
  const { url } = await session.call({
    method: 'web.PresignedGet',
    params: { bucket, object: key, expiry: expirySeconds, host },
    subject: { bucket, key },
    repeatable: true,
  })
  if (typeof url !== 'string') throw nonsense('answered web.PresignedGet without a link')
  // Gateways clean the path: they turn `a//b` into `a/b`, which is another object.
  const path = `${host}/${encodePath(bucket)}/${encodePath(key)}`
  if (sameText(url.slice(0, Math.max(url.indexOf('?'), 0)), path)) return url
  throw new S3Error('InvalidRequest', {
    message: "The object gateway's share links cannot name this key.",
    fields: { Key: key },
  })
}

/** Compares decoded texts, because encoders escape different characters. */
function sameText(given: string, wanted: string): boolean {
  try {
    return decodeURIComponent(given) === decodeURIComponent(wanted)
  } catch {
    return false
  }
}
