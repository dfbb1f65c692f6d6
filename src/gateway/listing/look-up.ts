import { randomBytes } from 'node:crypto'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import { nonsense } from '../errors.js'
import { type LevelSource, scanLevel } from './level-reader.js'
import { type RawEntry, readEntry } from './listing-scanner.js'

/**
 * Finds the entry named `key`, which may be a prefix if the key ends in `/`, and stops reading there. Resolves
 * undefined when there is none. Throws S3Error, such as NoSuchBucket.
 * @param whole list the whole level of the key: more expensive, and needed where `isPartOfRoot` says that a partial
 * listing is unreliable
 */
export async function lookUp(
  source: LevelSource,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  whole = false,
): Promise<RawEntry | undefined> {
  if (key.endsWith('/') && !features.anyKey) return (await lookUpFolder(source, bucket, key, whole))?.entry
  if (features.pagedListing) return firstOfPage(source, bucket, key)
  // A folder shows among its siblings. Asked for it with its slash, the gateway would list its content.
  const fromParent = await find(source, bucket, prefixFor(key, whole), key)
  if (fromParent?.isPrefix && features.anyKey) return (await find(source, bucket, key, key)) ?? fromParent
  return fromParent
}

/**
 * How gateways that keep objects as files store a folder object: listed among its siblings like an object; as an empty
 * directory, listed like any other prefix (MinIO on one folder); or beside the directory, listed first in its own level
 * (MinIO on several drives).
 */
interface FolderObject {
  readonly kept: 'as-object' | 'as-directory' | 'beside-directory'
  readonly entry: RawEntry
}

/**
 * Finds the folder object `key`, which ends in `/`, on a gateway that keeps objects as files. Resolves undefined also
 * for a directory that exists only because of its content. Throws S3Error.
 */
export async function lookUpFolder(
  source: LevelSource,
  bucket: string,
  key: string,
  whole = false,
): Promise<FolderObject | undefined> {
  const listed = await find(source, bucket, prefixFor(key, whole), key)
  if (!listed) return undefined
  if (!listed.isPrefix) return { kept: 'as-object', entry: listed }
  let first: RawEntry | undefined
  await scanLevel(source, bucket, key, (entry) => {
    first = entry
    return false
  })
  if (first === undefined) return { kept: 'as-directory', entry: marker(key) }
  return first.name === key ? { kept: 'beside-directory', entry: first } : undefined
}

/** The prefix to list in order to see `key` among its siblings: the keys that begin with it, or the whole level. */
function prefixFor(key: string, whole: boolean): string {
  const name = key.endsWith('/') ? key.slice(0, -1) : key
  return whole ? name.slice(0, name.lastIndexOf('/') + 1) : name
}

/** An entry for a folder object of which the gateway shows only the folder, and no time. */
export function marker(name: string): RawEntry {
  return { name, size: 0, lastModified: '1970-01-01T00:00:00Z', contentType: '', isPrefix: false }
}

/** True when the listing of `prefix` has an entry other than the prefix itself. */
export async function hasChildren(source: LevelSource, bucket: string, prefix: string): Promise<boolean> {
  let found = false
  await scanLevel(source, bucket, prefix, (entry) => {
    found ||= entry.name !== prefix
    return !found
  })
  return found
}

async function find(source: LevelSource, bucket: string, prefix: string, key: string): Promise<RawEntry | undefined> {
  let found: RawEntry | undefined
  await scanLevel(source, bucket, prefix, (entry) => {
    if (entry.name !== key) return true
    // The gateway may list both an object and a folder of this name. The object is the one asked for.
    found = entry
    return entry.isPrefix
  })
  return found
}

/** In byte order, no name with this prefix comes before the key itself. */
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

/** Go writes an empty list as `null`. */
export function readEntries(list: unknown): RawEntry[] {
  try {
    return list === null || list === undefined ? [] : (list as unknown[]).map(readEntry)
  } catch {
    throw nonsense('answered web.ListObjects with a listing that cannot be read')
  }
}

/**
 * Lists a random prefix, because the interface has no call to look at a bucket and this is the cheapest one. Throws
 * NoSuchBucket.
 */
export async function requireBucket(source: LevelSource, bucket: string): Promise<void> {
  const prefix = `~dealgate-${randomBytes(8).toString('hex')}`
  await scanLevel(source, bucket, prefix, () => false)
}
