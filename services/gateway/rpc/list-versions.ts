import { z } from 'zod'
import { GatewayError } from '../errors.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { orderOf, scanVersions, type VersionScanEntry } from '../store/version-scan.js'
import { isVersionId, shownId } from '../store/versions.js'
import { defineSignedRead, optionalText, text } from './method.js'

/** Most entries of a page. */
const MAX_KEYS = 1000

/**
 * Lists all versions, a page at a time. `versionMarker` is `nextVersionMarker` of the page before, or any id: the
 * version may be gone.
 */
export const listObjectVersions = defineSignedRead({
  name: 'web.ListObjectVersions',
  feature: 'versions',
  params: z.object({
    ...{ bucketName: text, prefix: text, delimiter: text },
    ...{ keyMarker: text, versionMarker: optionalText },
    maxKeys: z.int().min(1).max(MAX_KEYS).optional(),
  }),
  async run(
    { bucketName, prefix, delimiter, keyMarker, versionMarker = '', maxKeys = MAX_KEYS },
    { context, account },
  ) {
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
      withLocks: bucket.lockRule !== null,
    })
    const last = truncated ? entries.at(-1) : undefined
    return { versions: entries.map(toEntry), isTruncated: truncated, ...(last && markersOf(last)) }
  },
})

function toEntry(entry: VersionScanEntry): object {
  if (entry.kind === 'prefix') return { name: entry.prefix.toString(), isPrefix: true }
  const { row, isLatest } = entry
  const { key, since, size, etag, generation, contentType, checksum } = row
  const facts = {
    name: key.toString(),
    versionId: shownId(row),
    isLatest,
    lastModified: row.modified,
    since,
    generation,
  }
  if (row.isMarker) return { ...facts, deleteMarker: true }
  const { lock } = row
  return {
    ...{ ...facts, size, etag, contentType },
    ...(checksum !== null && { checksum }),
    ...(row.bodyAt === 'network' && { cold: true }),
    ...(lock && { lock: { mode: lock.mode, until: lock.ends, hold: lock.hold !== 0 } }),
  }
}

function markersOf(entry: VersionScanEntry): object {
  if (entry.kind === 'prefix') return { nextKeyMarker: entry.prefix.toString() }
  return { nextKeyMarker: entry.row.key.toString(), nextVersionMarker: orderOf(entry.row) }
}
