import type { S3 } from '@aws-sdk/client-s3'
import { until } from '../../support/waiting.js'

export interface Entry {
  readonly key: string
  readonly id: string
  readonly marker: boolean
  readonly latest: boolean
  /** Milliseconds since 1970. */
  readonly modified: number
}

/** All versions and delete markers of a bucket. */
export async function entriesOf(s3: S3, Bucket: string): Promise<Entry[]> {
  const entries: Entry[] = []
  for (let markers = {}; ; ) {
    const page = await s3.listObjectVersions({ Bucket, ...markers })
    const { Versions = [], DeleteMarkers = [] } = page
    for (const [list, marker] of [[Versions, false] as const, [DeleteMarkers, true] as const])
      for (const { Key, VersionId, IsLatest, LastModified } of list)
        entries.push({
          ...{ key: String(Key), id: String(VersionId), marker, latest: IsLatest === true },
          modified: Number(LastModified),
        })
    if (!page.IsTruncated) return entries
    markers = { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker }
  }
}

export const idsOf = (entries: readonly Entry[]): string[] => entries.map(({ key, id }) => `${key} ${id}`).sort()

/** A time with all versions that are there, and before those that come. */
export async function momentOf(s3: S3, Bucket: string): Promise<string> {
  const last = Math.max(...(await entriesOf(s3, Bucket)).map(({ modified }) => modified))
  await until('a later millisecond', async () => Date.now() > last + 1)
  return new Date(last + 1).toISOString()
}
