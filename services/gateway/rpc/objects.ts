import { z } from 'zod'
import { rfc3339 } from '../../clock.js'
import { isAllowed, owns, refusalOf } from '../access.js'
import type { Account } from '../accounts/accounts.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { orderOf } from '../exchange.js'
import type { GatewayTables } from '../index-schema.js'
import { type BucketRow, bucketLock } from '../store/buckets.js'
import { checkBucketName, mustBeBucket, mustOwnBucket } from '../store/key-rules.js'
import type { RemovalCondition } from '../store/version-changes.js'
import { defineMethod, defineSignedMethod, optionalText, type RpcCall, text, texts } from './method.js'
import { mustKnow } from './versions.js'

/** @see setBucketLock: with `lock`, the bucket has versions and object lock from the beginning */
export const makeBucket = defineSignedMethod({
  name: 'web.MakeBucket',
  params: z.object({ bucketName: text, lock: z.boolean().optional() }),
  async run({ bucketName, lock }, { context, account }) {
    if (lock && !context.features.has('locks')) throw new GatewayError('InvalidArguments')
    checkBucketName(context, bucketName)
    context.db.requireRoom()
    await context.db.transaction(async (tables) => {
      const { buckets, accounts } = tables
      const found = await buckets.find(bucketName)
      if (found !== undefined) {
        throw new GatewayError(found.owner === account.id ? 'BucketExists' : 'BucketTaken', { bucket: bucketName })
      }
      // Another process may have removed the account since the call began.
      if ((await accounts.get(account.id)) === undefined) throw new GatewayError('Authentication')
      await buckets.add(bucketName, rfc3339(context.clock.now()), account.id)
      if (!lock) return
      await mustKnow(tables, 'versions')
      const { id } = mustBeBucket(context, bucketName, await buckets.find(bucketName))
      await buckets.setVersioning(id, 'Enabled')
      await buckets.setLockRule(id, '{}')
    })
    return {}
  },
})

export const deleteBucket = defineSignedMethod({
  name: 'web.DeleteBucket',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context, account }) {
    const { read } = context.db
    const found = await mustBeEmpty(context, account, bucketName, read)
    const remove = async (tables: GatewayTables) => {
      await tables.buckets.lock(bucketName, true)
      const { id } = await mustBeEmpty(context, account, bucketName, tables)
      // Another one, whose lock this is not.
      if (id !== found.id) throw new GatewayError('NoSuchBucket', { bucket: bucketName })
      await tables.buckets.remove(id)
    }
    // The row alone may never be free: writes share it, and pass by what waits for it.
    await context.db.transaction(remove, { locks: [bucketLock(found)] })
    return {}
  },
})

async function mustBeEmpty(
  context: GatewayContext,
  account: Account,
  bucketName: string,
  tables: GatewayTables,
): Promise<BucketRow> {
  const bucket = await mustOwnBucket(context, account, bucketName, tables)
  if (!(await tables.buckets.isEmpty(bucket.id))) throw new GatewayError('BucketNotEmpty', { bucket: bucketName })
  return bucket
}

/**
 * Removes exactly the named objects; a missing object is no error. A call with a fence removes one object, in its order
 * among the writes to its key; one with a version id, that version alone. `bypass` removes a version in spite of a
 * retention in GOVERNANCE mode. With `noncurrentSince`, it must have stopped to be current then, and `newerNoncurrent`
 * objects that are newer must not be current either; with `alone`, it must be a delete marker that has its key for
 * itself.
 */
export const removeObject = defineMethod({
  name: 'web.RemoveObject',
  access: 'policy',
  params: z.object({
    bucketName: text,
    objects: texts,
    fence: z.number().optional(),
    writeId: optionalText,
    expectedGeneration: optionalText,
    versionId: optionalText,
    bypass: z.boolean().optional(),
    noncurrentSince: optionalText,
    newerNoncurrent: z.int().min(0).optional(),
    alone: z.boolean().optional(),
  }),
  async run(params, call) {
    const { context, identity } = call
    const {
      bucketName,
      objects,
      versionId,
      bypass = false,
      noncurrentSince,
      newerNoncurrent,
      alone,
      ...ordering
    } = params
    const bucket = await mustMayRemove(call, bucketName, objects)
    const only = conditionOf({ noncurrentSince, newerNoncurrent, alone })
    if (only && versionId === undefined) throw new GatewayError('InvalidArguments')
    const version = versionId === undefined ? undefined : { id: versionId, bypass, ...(only && { only }) }
    // Rules for others are about current objects.
    if (version !== undefined && !owns(identity, bucket)) throw refusalOf(identity)
    if (objects.includes('')) throw new GatewayError('InvalidArguments')
    const order = context.features.has('write-fences') ? orderOf(ordering) : undefined
    if (order !== undefined || version !== undefined) {
      if (objects.length > 1) throw new GatewayError('InvalidArguments')
      if (version !== undefined && order?.expected !== undefined) throw new GatewayError('InvalidArguments')
      return { ...(await context.store.removeOne(bucket, Buffer.from(objects[0] as string), order, version)) }
    }
    await context.store.remove(
      bucket,
      objects.map((name) => Buffer.from(name)),
    )
    return {}
  },
})

/** Returns the bucket. Throws GatewayError unless the caller may remove objects of these names from it. */
export async function mustMayRemove(
  { context, identity }: RpcCall,
  bucketName: string,
  objects: readonly string[],
): Promise<BucketRow> {
  if (bucketName === '' || objects.length === 0) throw new GatewayError('InvalidArguments')
  const { buckets, policies } = context.db.read
  const found = await buckets.find(bucketName)
  for (const name of objects) {
    if (!(await isAllowed(policies, identity, 'delete', found, name))) throw refusalOf(identity)
  }
  return mustBeBucket(context, bucketName, found)
}

interface RemovalParams {
  readonly noncurrentSince: string | undefined
  readonly newerNoncurrent: number | undefined
  readonly alone: boolean | undefined
}

function conditionOf({ noncurrentSince, newerNoncurrent, alone }: RemovalParams): RemovalCondition | undefined {
  if (alone && (noncurrentSince ?? newerNoncurrent) !== undefined) throw new GatewayError('InvalidArguments')
  if (alone) return { alone }
  if (noncurrentSince !== undefined) return { noncurrentSince, newer: newerNoncurrent ?? 0 }
  if (newerNoncurrent !== undefined) throw new GatewayError('InvalidArguments')
  return undefined
}
