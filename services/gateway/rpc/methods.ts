import { z } from 'zod'
import { uriEncode } from '../../../common/sigv4.js'
import { callerOf, isAllowed, refusalOf } from '../access.js'
import { GatewayError } from '../errors.js'
import { isFence, orderOf } from '../exchange.js'
import type { GatewayTables } from '../index-schema.js'
import { isRecord } from '../rest/object-headers.js'
import { MAX_EXPIRY, shareQuery } from '../share-link.js'
import { isText, type Policy } from '../store/buckets.js'
import { mustBeBucket, mustOwnBucket } from '../store/key-rules.js'
import { defineMethod, defineSignedMethod, optionalText, type RpcMethod, text, texts } from './method.js'
import { deleteBucket, makeBucket, removeObject } from './objects.js'
import { quotaMethods } from './quotas.js'
import { readMethods } from './read-methods.js'
import { createUrlToken, login, serverInfo, setAuth, storageInfo } from './server.js'
import { versionMethods } from './versions.js'

/**
 * Declares the order of an upload that began with `fence: late`, before its last bytes are sent. Throws Overtaken,
 * OtherGeneration and WriteIdReused at once when the write is already too late. Whatever it answers, the upload is
 * checked again when it is complete.
 */
const fenceUpload = defineMethod({
  name: 'web.FenceUpload',
  access: 'policy',
  params: z.object({
    bucketName: text,
    objectName: text,
    fence: z.number(),
    writeId: text,
    expectedGeneration: optionalText,
  }),
  async run(params, { context, identity }) {
    const { bucketName, objectName } = params
    const { buckets, policies } = context.db.read
    const found = await buckets.find(bucketName)
    if (!(await isAllowed(policies, identity, 'put', found, objectName))) throw refusalOf(identity)
    const bucket = mustBeBucket(context, bucketName, found)
    const order = orderOf(params)
    if (order === undefined) throw new GatewayError('InvalidArguments')
    const key = Buffer.from(objectName)
    await context.store.mayStillUpload(bucket, key, order)
    await context.lateOrders.give(callerOf(identity), bucket.id, key, order)
    return {}
  },
})

/**
 * Keeps a record with an object in place of that of its upload; '' removes it. Counts as a write to the key in the
 * order of the fences. Throws OtherGeneration when the object is another one by now, and Overtaken after a later write.
 */
const setObjectRecord = defineSignedMethod({
  name: 'web.SetObjectRecord',
  feature: 'object-records',
  params: z.object({
    ...{ bucketName: text, objectName: text },
    ...{ generation: text, fence: z.number(), record: text },
  }),
  async run({ bucketName, objectName, generation, fence, record }, { context, account }) {
    const bucket = await mustOwnBucket(context, account, bucketName)
    if (!isFence(fence) || (record !== '' && !isRecord(record))) throw new GatewayError('InvalidArguments')
    await context.store.keepRecord(bucket, Buffer.from(objectName), { generation, record, fence })
    return {}
  },
})

/**
 * Returns a link, without its scheme, that gives the account's read access to the object without credentials. Checks
 * neither the existence of the object nor the host.
 */
const presignedGet = defineSignedMethod({
  name: 'web.PresignedGet',
  params: z.object({ host: text, bucket: text, object: text, expiry: z.int().nullish() }),
  async run({ host, bucket, object, expiry }, { context, account }) {
    if (bucket === '' || object === '') throw new GatewayError('ShareNeedsNames')
    const { buckets, policies } = context.db.read
    if (!(await isAllowed(policies, account, 'get', await buckets.find(bucket), object))) {
      throw new GatewayError('ShareNotPermitted')
    }
    const path = uriEncode(`/${bucket}/${object}`, true)
    const seconds = expiry != null && expiry > 0 && expiry < MAX_EXPIRY ? expiry : MAX_EXPIRY
    const query = shareQuery(context, account, { path, host, expires: seconds, now: new Date() })
    return { url: `${host}${path}?${query}` }
  },
})

const MAX_LENGTH = 128
/** Most epochs that one call replaces: each of them is kept. */
const MAX_OVER = 1000

/**
 * Remembers which state stores the clients of the account have used, by the id of each store, so that a client
 * without local memory recognises a store that has lost its records. Returns whether the id was known, and whether
 * others were, before the call, and the highest mark that was kept with the epoch. With `keep` the epoch and the mark
 * are known from now on, durably, and the id replaces those in `over`, which have the highest of all marks then. See
 * docs/state.md.
 */
const stateEpoch = defineSignedMethod({
  name: 'web.StateEpoch',
  feature: 'state-epoch',
  params: z.object({
    epoch: text,
    over: texts,
    keep: z
      .boolean()
      .nullish()
      .transform((value) => value ?? false),
    mark: z
      .int()
      .min(0)
      .nullish()
      .transform((value) => value ?? 0),
  }),
  async run({ epoch: storeId, over, keep, mark }, { context, account: { id } }) {
    const { db } = context
    const tooLong = over.length > MAX_OVER || [storeId, ...over].some(({ length }) => length > MAX_LENGTH)
    const isKeepable = storeId !== '' && !over.includes(storeId) && [storeId, ...over].every(isText)
    if (tooLong || (keep && !isKeepable)) throw new GatewayError('InvalidArguments')
    const foundIn = async ({ storeIds }: GatewayTables) => {
      const kept = await storeIds.find(id, storeId)
      return { known: kept.known, others: await storeIds.hasOther(id, storeId), mark: Math.max(kept.mark, 0) }
    }
    const isKept = async ({ storeIds }: GatewayTables) => {
      if ((await storeIds.find(id, storeId)).mark < mark) return false
      for (const former of over) if (!(await storeIds.find(id, former)).replaced) return false
      return true
    }
    if (!keep || (await isKept(db.read))) return foundIn(db.read)
    return db.transaction(async (tables) => {
      const before = await foundIn(tables)
      await tables.storeIds.keep(id, storeId, over, mark)
      return before
    })
  },
})

const POLICIES: readonly string[] = ['readonly', 'writeonly', 'readwrite'] satisfies Policy[]

/** `none` removes the entry of this prefix; any other policy replaces it. */
const setBucketPolicy = defineSignedMethod({
  name: 'web.SetBucketPolicy',
  params: z.object({ bucketName: text, prefix: text, policy: text }),
  async run({ bucketName, prefix: given, policy }, { context, account }) {
    const prefix = given.endsWith('*') ? given.slice(0, -1) : given
    if (policy !== 'none' && !POLICIES.includes(policy)) throw new GatewayError('InvalidPolicy', { value: policy })
    await context.db.transaction(async (tables) => {
      await tables.buckets.lock(bucketName, false)
      const { id } = await mustOwnBucket(context, account, bucketName, tables)
      if (policy === 'none') await tables.policies.remove(id, prefix)
      else await tables.policies.put(id, { prefix, policy: policy as Policy })
    })
    return {}
  },
})

const all: readonly RpcMethod[] = [
  login,
  makeBucket,
  deleteBucket,
  setBucketPolicy,
  createUrlToken,
  removeObject,
  fenceUpload,
  setObjectRecord,
  presignedGet,
  setAuth,
  storageInfo,
  serverInfo,
  stateEpoch,
  ...readMethods,
  ...quotaMethods,
  ...versionMethods,
]

export const methods: ReadonlyMap<string, RpcMethod> = new Map(all.map((method) => [method.name, method]))
