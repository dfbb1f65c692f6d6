import { z } from 'zod'
import type { Feature } from '../../store/runs.js'
import { GatewayError } from '../errors.js'
import type { GatewayTables } from '../index-schema.js'
import { isTime } from '../rest/version-headers.js'
import { type BucketRow, bucketLock } from '../store/buckets.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { keyLock } from '../store/local-copies.js'
import { changeLock, DAYS_OF_YEAR, lockModes, MAX_YEARS } from '../store/object-locks.js'
import { openVersion } from '../store/version-reads.js'
import { defineSignedMethod, optionalText, type RpcMethod, type SignedCall, text } from './method.js'

const setBucketVersioning = defineSignedMethod({
  name: 'web.SetBucketVersioning',
  feature: 'versions',
  params: z.object({ bucketName: text, status: z.enum(['Enabled', 'Suspended']) }),
  async run({ bucketName, status }, call) {
    await changeBucket(call, bucketName, async ({ buckets }, { id, lockRule }) => {
      if (status === 'Suspended' && lockRule !== null) throw new GatewayError('InvalidBucketState', { value: LOCKED })
      await buckets.setVersioning(id, status)
    })
    return {}
  },
})

const LOCKED = 'An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.'
const EARLIER = 'A gateway process of an earlier dealgate still uses this database: stop it first.'

const mode = z.enum(lockModes)

/**
 * Gives the bucket object lock, which it then has for ever, and its new objects a retention: `mode`, and `days` or
 * `years`; or none of them.
 */
const setBucketLock = defineSignedMethod({
  name: 'web.SetBucketLock',
  feature: 'locks',
  params: z.object({
    bucketName: text,
    mode: mode.optional(),
    days: z
      .int()
      .min(1)
      .max(MAX_YEARS * DAYS_OF_YEAR)
      .optional(),
    years: z.int().min(1).max(MAX_YEARS).optional(),
  }),
  async run({ bucketName, mode, days, years }, call) {
    const periods = [days, years].filter((period) => period !== undefined).length
    if (periods !== (mode === undefined ? 0 : 1)) throw new GatewayError('InvalidArguments')
    await changeBucket(call, bucketName, async ({ buckets }, { id, versioning }) => {
      if (versioning !== 'Enabled') throw new GatewayError('InvalidBucketState', { value: NOT_ENABLED })
      await buckets.setLockRule(id, JSON.stringify({ mode, days, years }))
    })
    return {}
  },
})

const NOT_ENABLED = "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration"

/**
 * Changes the lock of a version: by its id, by the generation of its body, or of the current one. `retention: null`
 * ends a retention; with `bypass` also one in GOVERNANCE mode that has not ended.
 */
const setObjectLock = defineSignedMethod({
  name: 'web.SetObjectLock',
  feature: 'locks',
  params: z.object({
    ...{ bucketName: text, objectName: text, versionId: optionalText, generation: optionalText },
    retention: z.object({ mode, until: z.int().refine(isTime) }).nullish(),
    hold: z.boolean().optional(),
    bypass: z.boolean().optional(),
  }),
  async run({ bucketName, objectName, versionId, generation, bypass = false, ...change }, { context, account }) {
    const bucket = await mustOwnBucket(context, account, bucketName)
    if (versionId !== undefined && generation !== undefined) throw new GatewayError('InvalidArguments')
    const byGeneration = generation === undefined ? undefined : { generation }
    const ref = versionId === undefined ? byGeneration : { id: versionId }
    const key = Buffer.from(objectName)
    const work = async (tables: GatewayTables) => {
      const held = await tables.buckets.lock(bucketName, false)
      if (held?.id !== bucket.id) throw new GatewayError('NoSuchBucket', { bucket: bucketName })
      if (held.lockRule === null) throw new GatewayError('NoLockConfiguration')
      const { row } = await openVersion(tables, held, key, ref, { body: false, record: false })
      await changeLock(tables, row.generation, change, bypass)
    }
    await context.db.transaction(work, { takesRoom: true, locks: [keyLock(bucket, key)], shares: [bucketLock(bucket)] })
    return {}
  },
})

/** Throws GatewayError InvalidBucketState while a program would pass by versions and locks, or quotas. */
export async function mustKnow({ runs }: Pick<GatewayTables, 'runs'>, feature: Feature): Promise<void> {
  if (await runs.isEarlierAlive(feature)) throw new GatewayError('InvalidBucketState', { value: EARLIER })
}

/**
 * Changes a bucket alone: what goes on there has ended, or begins after it.
 * @param find finds the bucket, and refuses an account that may not change it
 * @param feature what other programs would pass by
 */
export async function changeBucket(
  { context, account }: SignedCall,
  bucketName: string,
  change: (tables: GatewayTables, bucket: BucketRow) => Promise<void>,
  {
    find = mustOwnBucket,
    feature = 'versions',
  }: { readonly find?: typeof mustOwnBucket; readonly feature?: Feature } = {},
): Promise<void> {
  const found = await find(context, account, bucketName)
  const work = async (tables: GatewayTables) => {
    await tables.buckets.lock(bucketName, true)
    const bucket = await find(context, account, bucketName, tables)
    // Another one, whose lock this is not.
    if (bucket.id !== found.id) throw new GatewayError('NoSuchBucket', { bucket: bucketName })
    await mustKnow(tables, feature)
    await change(tables, bucket)
  }
  await context.db.transaction(work, { locks: [bucketLock(found)] })
}

export const versionMethods: readonly RpcMethod[] = [setBucketVersioning, setBucketLock, setObjectLock]
