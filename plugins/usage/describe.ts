import {
  type BucketNumbers,
  type Context,
  compareUtf8,
  defineCall,
  isOpenToEverybody,
  PageOf,
  S3Error,
  z,
} from 'dealgate/plugin'
import { source } from './count.js'

/** Buckets that are looked at concurrently: policies and ACLs are read one by one. */
const MAX_CONCURRENCY = 16

const amount = z.object({ Objects: z.int(), Bytes: z.int() })

const described = z.object({
  Bucket: z.string(),
  Created: z.string().describe('RFC 3339.'),
  Numbers: amount
    .extend({ NoncurrentVersions: z.int(), NoncurrentBytes: z.int(), DeleteMarkers: z.int() })
    .optional()
    .describe('As of the last write, wherever the bytes are. Absent where the gateway keeps none.'),
  Counted: amount
    .extend({ At: z.iso.datetime() })
    .optional()
    .describe('Where the gateway keeps no numbers: the last CountBucket.'),
  Versioning: z.enum(['Disabled', 'Enabled', 'Suspended']).optional(),
  ObjectLock: z.boolean().optional().describe('The bucket was made with object lock.'),
  Encryption: z.enum(['None', 'AES256', 'aws:kms']).optional().describe('Of new objects whose upload says nothing.'),
  Quota: amount.partial().optional().describe('What the bucket may have; what is absent has no bound.'),
  Stored: amount.optional().describe('What counts for the quota: all versions, and delete markers as objects.'),
  Public: z.boolean().optional().describe('A policy, an ACL or the gateway opens the bucket to everybody.'),
})

type Described = z.output<typeof described>

/** What a caller may know of a bucket, by the action of the operation of S3 that tells it. */
const ACTIONS = {
  numbers: 's3:ListBucket',
  versioning: 's3:GetBucketVersioning',
  lock: 's3:GetBucketObjectLockConfiguration',
  encryption: 's3:GetEncryptionConfiguration',
  quota: 'quota:GetBucketQuota',
  public: 's3:GetBucketPolicyStatus',
} as const

type Known = Readonly<Record<keyof typeof ACTIONS, boolean>>

/**
 * The call that shows a page of buckets with their numbers and settings: one statement of a gateway that keeps the
 * numbers, whatever the number of buckets and objects.
 */
export const describeBuckets = defineCall({
  name: 'DescribeBuckets',
  source,
  summary:
    'Lists the own buckets, each with its objects and bytes, versioning, lock, encryption, quota, and whether it is public.',
  access: 'signed',
  // Decided for each bucket and each member: what the caller may not ask for is absent.
  ownRules: true,
  on: { method: 'GET', resource: 'service', path: '/-/usage/v1/buckets' },
  query: z.strictObject({
    from: z.string().optional().describe('Name of the first bucket, in the order of UTF-8.'),
    prefix: z.string().optional().describe('Lists the buckets whose names begin with it.'),
    public: z.enum(['true', 'false']).optional().describe('`false` leaves out `Public`, which costs most.'),
  }),
  pages: 'Buckets',
  result: z.object({ Buckets: z.array(described).meta({ element: 'DescribedBucket' }) }),
  async answer({ query, page }, context) {
    const from = page.from ?? query.from ?? ''
    const own = await context.gateway.listBuckets()
    const all = own.filter(({ name }) => name.startsWith(query.prefix ?? '') && compareUtf8(name, from) >= 0)
    all.sort((one, other) => compareUtf8(one.name, other.name))
    const rows = all.slice(0, page.limit)
    const actions = Object.entries(ACTIONS).filter(([name]) => name !== 'public' || query.public !== 'false')
    const known = new Map(await each(rows, async ({ name }) => [name, await knownOf(name, actions, context)] as const))
    const wanted = rows.map(({ name }) => name).filter((name) => known.get(name)?.any)
    const features = await context.gateway.features()
    const numbers =
      features.bucketNumbers && wanted.length > 0 ? await context.gateway.bucketNumbers(wanted) : undefined
    const byName = new Map(numbers?.map((one) => [one.name, one]))
    const shown = await each(rows, async ({ name, creationDate }): Promise<Described[]> => {
      const may = known.get(name)
      const head = { Bucket: name, Created: creationDate }
      if (!may?.any) return [head]
      try {
        const ofGateway = features.bucketNumbers ? keptBy(byName.get(name), may) : await askedOf(name, may, context)
        return [{ ...head, ...ofGateway, ...(await settingsOf(name, may, context)) }]
      } catch (error) {
        // It has been deleted meanwhile.
        if (error instanceof S3Error && error.code === 'NoSuchBucket') return []
        throw error
      }
    })
    return { Buckets: new PageOf(shown.flat(), all[page.limit]?.name) }
  },
})

/** What the gateway keeps of a bucket; nothing of one that is gone. */
function keptBy(found: BucketNumbers | undefined, may: Known): Partial<Described> {
  if (found === undefined) return {}
  const { quota, usage, current, noncurrent, markers, versioning, locks } = found
  return {
    ...(may.numbers && {
      Numbers: {
        ...amountOf(current),
        NoncurrentVersions: noncurrent.objects,
        NoncurrentBytes: noncurrent.bytes,
        DeleteMarkers: markers,
      },
    }),
    ...(may.versioning && { Versioning: versioning ?? ('Disabled' as const) }),
    ...(may.lock && { ObjectLock: locks }),
    ...(may.quota && {
      Quota: {
        ...(quota.objects !== null && { Objects: quota.objects }),
        ...(quota.bytes !== null && { Bytes: quota.bytes }),
      },
      Stored: amountOf(usage),
    }),
  }
}

const amountOf = ({ objects, bytes }: { readonly objects: number; readonly bytes: number }) => ({
  Objects: objects,
  Bytes: bytes,
})

/** The same of a gateway that keeps no numbers. */
async function askedOf(bucket: string, may: Known, { gateway, settings }: Context): Promise<Partial<Described>> {
  const { versions } = await gateway.features()
  const versioning = versions && (may.versioning || may.lock) ? await gateway.versioning(bucket) : undefined
  const count = may.numbers ? await settings.get(bucket, 'usageCount') : undefined
  return {
    ...(count && { Counted: { ...amountOf(count), At: new Date(count.at).toISOString() } }),
    ...(may.versioning && { Versioning: versioning?.status ?? ('Disabled' as const) }),
    ...(may.lock && { ObjectLock: versioning?.lock !== undefined }),
  }
}

/** What this server knows of a bucket. */
async function settingsOf(bucket: string, may: Known, context: Context): Promise<Partial<Described>> {
  const encryption = may.encryption
    ? ((await context.settings.get(bucket, 'encryption')) ?? (await context.store.encryptionFor(bucket)))
    : undefined
  return {
    ...(may.encryption && { Encryption: encryption?.algorithm ?? ('None' as const) }),
    ...(may.public && { Public: await isOpenToEverybody(context, bucket) }),
  }
}

/** A caller without the right to read the whole bucket knows nothing of what is in it. */
async function knownOf(
  bucket: string,
  actions: readonly (readonly [name: string, action: string])[],
  { checks, authorizer }: Context,
): Promise<Known & { readonly any: boolean }> {
  const mayRead = await isAllowed(async () => checks.requireWholeBucket(bucket, 'read'))
  const entries = actions.map(async ([name, action]) => [
    name,
    mayRead && (await isAllowed(() => authorizer.requireAction(action, { bucket }))),
  ])
  const known = Object.fromEntries(await Promise.all(entries)) as Known
  return { ...known, any: Object.values(known).includes(true) }
}

async function isAllowed(check: () => Promise<unknown>): Promise<boolean> {
  try {
    await check()
    return true
  } catch (error) {
    if (error instanceof S3Error && (error.code === 'AccessDenied' || error.code === 'NoSuchBucket')) return false
    throw error
  }
}

/** Runs `work` for each item, some at a time, and resolves with the results in the order of the items. */
async function each<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < items.length; at += MAX_CONCURRENCY)
    results.push(...(await Promise.all(items.slice(at, at + MAX_CONCURRENCY).map(work))))
  return results
}
