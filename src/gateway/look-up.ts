import { randomBytes } from 'node:crypto'
import { nonsense } from './errors.js'
import type { GatewayFeatures } from './gateway.js'
import { type LevelSource, scanLevel } from './level-reader.js'
import { type RawEntry, readEntry } from './list-entry.js'

/**
 * The entry of a listing whose name is `key`, which may be a prefix if the key ends in `/`; the reading stops there. Undefined when there is
 * none. Throws S3Error: NoSuchBucket and whatever else a listing throws.
 */
export async function lookUp(
  source: LevelSource,
  features: GatewayFeatures,
  bucket: string,
  key: string,
): Promise<RawEntry | undefined> {
  const isFolder = key.endsWith('/') && !features.anyKey
  if (features.pagedListing && !isFolder) return firstOfPage(source, bucket, key)
  // A folder shows among its siblings; asked for with its slash, the gateway would list what is in it.
  const fromParent = await find(source, bucket, key.endsWith('/') ? key.slice(0, -1) : key, key)
  if (fromParent?.isPrefix && features.anyKey) return (await find(source, bucket, key, key)) ?? fromParent
  return fromParent
}

/** True when the listing of `prefix` has an entry other than that of the prefix itself. */
export async function hasChildren(source: LevelSource, bucket: string, prefix: string): Promise<boolean> {
  let found = false
  await scanLevel(source, bucket, prefix, (entry) => {
    found ||= entry.name !== prefix
    return !found
  })
  return found
}

/** The interface has no call that looks at a bucket; listing what is not there is the cheapest. Throws NoSuchBucket. */
export async function requireBucket(source: LevelSource, bucket: string): Promise<void> {
  const prefix = `~dealgate-${randomBytes(8).toString('hex')}`
  await scanLevel(source, bucket, prefix, () => false)
}

async function find(source: LevelSource, bucket: string, prefix: string, key: string): Promise<RawEntry | undefined> {
  let found: RawEntry | undefined
  await scanLevel(source, bucket, prefix, (entry) => {
    if (entry.name !== key) return true
    // An object and a folder of one name may both be listed: the object is what is asked for.
    found = entry
    return entry.isPrefix
  })
  return found
}

/** In byte order nothing with this prefix comes before the key itself. */
async function firstOfPage(source: LevelSource, bucket: string, key: string): Promise<RawEntry | undefined> {
  const result = await source.session.call({
    method: 'web.ListObjects',
    params: { bucketName: bucket, prefix: key, marker: '', maxKeys: 1, delimiter: '' },
    subject: { bucket },
    repeatable: true,
  })
  const entries = readEntries(result.objects)
  return entries.find((entry) => entry.name === key)
}

/** `null` is how Go writes an empty list. */
export function readEntries(list: unknown): RawEntry[] {
  try {
    return list === null || list === undefined ? [] : (list as unknown[]).map(readEntry)
  } catch {
    throw nonsense('answered web.ListObjects with a listing that cannot be read')
  }
}
