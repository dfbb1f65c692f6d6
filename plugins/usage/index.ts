import { type Context, defineCall, definePlugin, PageOf, z } from 'dealgate/plugin'

/** Most objects of a page, and the time after which a page ends, ms. */
const MAX_OBJECTS = 100_000
const MAX_MS = 10_000

/** Keys of one listing. */
const LISTED = 1000

const count = z.object({ StorageClass: z.string(), Objects: z.int(), Bytes: z.int() })

/**
 * Counts what a bucket contains. The gateway has no call for that, so the server walks through the listing: a page of
 * the answer is what it has counted within the bounds.
 */
const listBucketUsage = defineCall({
  name: 'ListBucketUsage',
  source: 'docs/extensions.md#usage',
  summary: 'Counts the objects of a bucket and their bytes by storage class, up to 100,000 objects a page.',
  access: 'signed',
  action: ['s3:ListBucket', 'usage:ListBucketUsage'],
  // A listing shows a caller what it may read.
  ownRules: true,
  on: { method: 'GET', resource: 'bucket', subresource: 'x-usage' },
  query: z.strictObject({
    prefix: z.string().optional().describe('Counts the keys that begin with it.'),
    'max-objects': z.int().min(1).max(MAX_OBJECTS).optional().describe('Objects of a page; default 100,000.'),
  }),
  pages: 'Classes',
  result: z.object({
    Objects: z.int().describe('Of this page: add up those of all pages.'),
    Bytes: z.int(),
    Classes: z.array(count).meta({ element: 'Class' }),
  }),
  async answer({ request: { bucket }, query: { prefix = '', 'max-objects': most = MAX_OBJECTS }, page }, context) {
    const { classes, next } = await countFrom(context, bucket, { prefix, after: page.from ?? '', most })
    const sum = (member: 'Objects' | 'Bytes') => classes.reduce((total, one) => total + one[member], 0)
    return { Objects: sum('Objects'), Bytes: sum('Bytes'), Classes: new PageOf(classes, next) }
  },
})

async function countFrom(
  { store, archive }: Pick<Context, 'store' | 'archive'>,
  bucket: string,
  { prefix, after, most }: { readonly prefix: string; readonly after: string; readonly most: number },
) {
  const ends = Date.now() + MAX_MS
  const classes = new Map<string, { StorageClass: string; Objects: number; Bytes: number }>()
  let [last, left, truncated] = [after, most, true]
  while (truncated && left > 0 && (last === after || Date.now() < ends)) {
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

/** The call that counts what a bucket contains. */
export default definePlugin({
  name: 'usage',
  standard: true,
  summary: 'Counts the objects of a bucket and their bytes by storage class.',
  create: () => ({ operations: [listBucketUsage] }),
})
