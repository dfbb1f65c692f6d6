import { type Context, defineCall, type JobKind, type PluginHost, z } from 'dealgate/plugin'

/** Keys of one listing. */
const LISTED = 1000

export const source = 'docs/extensions.md#usage'

const COUNT = 'usage:CountBucket'

declare module 'dealgate/plugin' {
  interface SettingTypes {
    /** The last count of the bucket that has ended. */
    usageCount: BucketCount
  }
}

/** A count of the objects of a bucket by its listing. */
interface BucketCount {
  readonly objects: number
  readonly bytes: number
  /** When it ended, ms since 1970. */
  readonly at: number
}

export const byClass = z.object({ StorageClass: z.string(), Objects: z.int(), Bytes: z.int() })

type ClassCount = z.output<typeof byClass>

interface Bounds {
  readonly prefix: string
  /** The last key that was counted before; '' for none. */
  readonly after: string
  readonly most: number
  /** The walk ends after a listing once it returns false. */
  goesOn(counted: readonly ClassCount[]): boolean
}

/** Walks through the listing. Resolves with what it has found, and the last key if more follow. */
export async function countFrom(
  { store, archive }: Pick<Context, 'store' | 'archive'>,
  bucket: string,
  { prefix, after, most, goesOn }: Bounds,
): Promise<{ readonly classes: ClassCount[]; readonly next: string | undefined }> {
  const classes = new Map<string, ClassCount>()
  let [last, left, truncated] = [after, most, true]
  while (truncated && left > 0 && (last === after || goesOn([...classes.values()]))) {
    const page = await store.list(bucket, { prefix, delimiter: '', after: last, limit: Math.min(LISTED, left) })
    for (const entry of page.entries) {
      if (entry.kind !== 'object') continue
      const { storageClass } = archive.presence(entry)
      const known = classes.get(storageClass) ?? { StorageClass: storageClass, Objects: 0, Bytes: 0 }
      classes.set(storageClass, { ...known, Objects: known.Objects + 1, Bytes: known.Bytes + entry.size })
      last = entry.key
    }
    left -= page.entries.length
    truncated = page.truncated && page.entries.length > 0
  }
  return { classes: [...classes.values()], next: truncated ? last : undefined }
}

export function sumOf(classes: readonly ClassCount[], member: 'Objects' | 'Bytes'): number {
  return classes.reduce((total, one) => total + one[member], 0)
}

const result = z.object({
  Bucket: z.string(),
  Objects: z.int(),
  Bytes: z.int(),
  Classes: z.array(byClass).meta({ element: 'Class' }),
  Counted: z.iso.datetime().describe('When the count ended.'),
})

/**
 * The call that counts a whole bucket as a job, for gateways that keep no numbers of their buckets. What it has found
 * is kept with the bucket.
 */
export const countBucket = defineCall({
  name: 'CountBucket',
  source,
  summary: 'Counts all objects of a bucket as a job, and keeps the result for DescribeBuckets.',
  access: 'owner',
  action: ['s3:ListBucket', COUNT],
  on: { method: 'POST', resource: 'bucket', subresource: 'x-usage' },
  result,
  root: 'BucketCount',
  job: COUNT,
  spends: false,
  order: async ({ request: { bucket } }) => ({ resource: `/${bucket}`, input: { bucket } }),
})

/** @param host from `start` on */
export function countJob(host: PluginHost): JobKind<{ readonly bucket: string }, z.output<typeof result>> {
  return {
    name: COUNT,
    async run(job) {
      const { bucket } = job.input
      // The job may begin long after its order.
      await job.context.authorizer.requireAction('s3:ListBucket', { bucket })
      const goesOn = (counted: readonly ClassCount[]) => {
        const tasks = sumOf(counted, 'Objects')
        const bytes = sumOf(counted, 'Bytes')
        job.report({
          phase: 'Counting',
          tasks: { total: tasks, succeeded: tasks, failed: 0 },
          bytes: { done: bytes, total: bytes },
        })
        job.signal.throwIfAborted()
        return true
      }
      const bounds = { prefix: '', after: '', most: Number.MAX_SAFE_INTEGER, goesOn }
      const { classes } = await countFrom(job.context, bucket, bounds)
      const [objects, bytes, at] = [sumOf(classes, 'Objects'), sumOf(classes, 'Bytes'), host.now()]
      await host.settings.set(bucket, 'usageCount', { objects, bytes, at })
      return { Bucket: bucket, Objects: objects, Bytes: bytes, Classes: classes, Counted: new Date(at).toISOString() }
    },
  }
}
