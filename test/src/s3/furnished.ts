import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { S3 } from '@aws-sdk/client-s3'
import { DatabaseSync } from '@photostructure/sqlite'
import type { Endpoint } from '../../suites/sign.js'
import { sdkFor } from '../../support/programs/sdk.js'
import type { Target } from './s3-calls.js'

/** A client that repeats nothing and adds no checksums of its own. */
export function clientOf(t: { teardown(run: () => unknown): void }, server: Endpoint): S3 {
  // WriteGetObjectResponse goes to a host of its own, of which there is none.
  return sdkFor(t, server, { requestChecksumCalculation: 'WHEN_REQUIRED', disableHostPrefix: true })
}

/** A bucket with a little of everything that can be lost. */
export async function furnish(client: S3, bucket: string): Promise<Target> {
  const key = 'a folder/an object'
  await client.createBucket({ Bucket: bucket })
  const Tagging = { TagSet: [{ Key: 'cost', Value: '1' }] }
  await client.putBucketTagging({ Bucket: bucket, Tagging })
  const put = { Body: 'content', ContentType: 'text/x-own', Metadata: { colour: 'blue' }, Tagging: 'team=blue' }
  await client.putObject({ Bucket: bucket, Key: key, ...put })
  const { UploadId = '' } = await client.createMultipartUpload({ Bucket: bucket, Key: key })
  const part = { UploadId, PartNumber: 1, Body: 'part one' }
  const { ETag = '' } = await client.uploadPart({ Bucket: bucket, Key: key, ...part })
  return { bucket, key, uploadId: UploadId, partEtag: ETag }
}

/** A digest of every row of every table: objects, buckets, policies, records, uploads, settings. */
export function contentOf(data: string): string {
  const hash = createHash('sha256')
  for (const file of ['state/records.sqlite', 'services/gateway/index.db']) {
    const database = new DatabaseSync(join(data, file), { readOnly: true })
    const tables = database.prepare(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`).all()
    for (const { name } of tables as { name: string }[]) {
      for (const row of database.prepare(`SELECT * FROM "${name}"`).all())
        hash.update(`${name} ${JSON.stringify(row)}\n`)
    }
    database.close()
  }
  return hash.digest('hex')
}
