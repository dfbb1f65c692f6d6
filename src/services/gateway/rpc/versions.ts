import { z } from 'zod'
import { GatewayError } from '../errors.js'
import type { GatewayTables } from '../index-schema.js'
import { type BucketRow, bucketLock } from '../store/buckets.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { orderOf, scanVersions, type VersionScanEntry } from '../store/version-scan.js'
import { isVersionId, shownId } from '../store/versions.js'
import { defineSignedMethod, optionalText, type RpcMethod, type SignedCall, text } from './method.js'

const bucketVersioning = defineSignedMethod({
  name: 'web.BucketVersioning',
  feature: 'versions',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context, account }) {
    const { versioning, lockRule } = await mustOwnBucket(context, account, bucketName)
    return {
      ...(versioning !== null && { status: versioning }),
      ...(lockRule !== null && { lock: JSON.parse(lockRule) }),
    }
  },
})

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

/** Changes the versions of a bucket alone: what goes on there has ended, or begins after it. */
async function changeBucket(
  { context, account }: SignedCall,
  bucketName: string,
  change: (tables: GatewayTables, bucket: BucketRow) => Promise<void>,
): Promise<void> {
  const found = await mustOwnBucket(context, account, bucketName)
  const work = async (tables: GatewayTables) => {
    await tables.buckets.lock(bucketName, true)
    const bucket = await mustOwnBucket(context, account, bucketName, tables)
    // Another one, whose lock this is not.
    if (bucket.id !== found.id) throw new GatewayError('NoSuchBucket', { bucket: bucketName })
    // It would remove the bodies of versions as garbage.
    if (await tables.runs.isEarlierAlive()) throw new GatewayError('InvalidBucketState', { value: EARLIER })
    await change(tables, bucket)
  }
  await context.db.transaction(work, { locks: [bucketLock(found)] })
}

/** Most entries of a page. */
const MOST = 1000

/**
 * Lists all versions, a page at a time. `versionMarker` is `nextVersionMarker` of the page before, or any id: the
 * version may be gone.
 */
const listObjectVersions = defineSignedMethod({
  name: 'web.ListObjectVersions',
  feature: 'versions',
  params: z.object({
    ...{ bucketName: text, prefix: text, delimiter: text },
    ...{ keyMarker: text, versionMarker: optionalText },
    maxKeys: z.int().min(1).max(MOST).optional(),
  }),
  async run({ bucketName, prefix, delimiter, keyMarker, versionMarker = '', maxKeys = MOST }, { context, account }) {
    const bucket = await mustOwnBucket(context, account, bucketName)
    if (versionMarker !== '' && (keyMarker === '' || !isVersionId(versionMarker)))
      throw new GatewayError('InvalidArguments')
    const { entries, truncated } = await scanVersions(context.db.read.versions, {
      bucket: bucket.id,
      prefix: Buffer.from(prefix),
      delimiter: Buffer.from(delimiter),
      after: Buffer.from(keyMarker),
      afterId: versionMarker,
      limit: maxKeys,
    })
    const last = truncated ? entries.at(-1) : undefined
    return { versions: entries.map(toEntry), isTruncated: truncated, ...(last && markersOf(last)) }
  },
})

function toEntry(entry: VersionScanEntry): object {
  if (entry.kind === 'prefix') return { name: entry.prefix.toString(), isPrefix: true }
  const { row, isLatest } = entry
  const { key, since, size, etag, generation, contentType } = row
  const facts = {
    name: key.toString(),
    versionId: shownId(row),
    isLatest,
    lastModified: row.modified,
    since,
    generation,
  }
  if (row.isMarker) return { ...facts, deleteMarker: true }
  return { ...facts, size, etag, contentType, ...(row.bodyAt === 'network' && { cold: true }) }
}

function markersOf(entry: VersionScanEntry): object {
  if (entry.kind === 'prefix') return { nextKeyMarker: entry.prefix.toString() }
  return { nextKeyMarker: entry.row.key.toString(), nextVersionMarker: orderOf(entry.row) }
}

export const versionMethods: readonly RpcMethod[] = [bucketVersioning, setBucketVersioning, listObjectVersions]
