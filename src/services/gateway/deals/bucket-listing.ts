import { openSnapshot } from '../../database.js'
import type { ManifestFile } from './manifest.js'

const PAGE = 1000

/** The objects of a bucket at one moment, page by page, in byte order of their keys. */
export interface BucketListing {
  pages(): Iterable<ManifestFile[]>
  close(): void
}

/**
 * Lists a bucket as it is now, regardless of writes while the pages are read. Call it outside of transactions, and
 * close it soon.
 * @param file path of the index database
 * @param prefix only the objects whose keys begin so
 */
export function openBucketListing(file: string, bucket: number, prefix: Buffer = Buffer.alloc(0)): BucketListing {
  const snapshot = openSnapshot(file)
  const page = snapshot.db.prepare(
    'SELECT key, generation, size, etag FROM objects WHERE bucket = ? AND key > ? AND key >= ? ORDER BY key LIMIT ?',
  )
  return {
    *pages() {
      let after = Buffer.alloc(0)
      for (;;) {
        const rows = page.all(bucket, after, prefix, PAGE) as {
          key: Uint8Array
          generation: string
          size: number
          etag: string
        }[]
        const files = rows.map((row) => ({ ...row, key: Buffer.from(row.key) }))
        const within = files.filter(({ key }) => key.subarray(0, prefix.length).equals(prefix))
        if (within.length > 0) yield within
        const last = files.at(-1)
        if (last === undefined || within.length < PAGE) return
        after = last.key
      }
    },
    close: snapshot.close,
  }
}
