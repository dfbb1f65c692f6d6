import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type Client, CopyDestinationOptions, CopySourceOptions } from 'minio'
import t, { type Test } from 'tap'
import { bytes, KiB, MiB, md5, sha256, sha256OfFile } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { minioFor } from '../support/programs/sdk.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'

inEachMode(t, async (t, server) => {
  const client = minioFor(server, { partSize: 5 * MiB })
  await t.test('multipart', (t) => multipart(t, client, server))
  // sdk-v3 and real-gateway show the others with a legacy gateway.
  if (server.mode === 'legacy') return
  await t.test('objects', (t) => objects(t, client))
})

async function objects(t: Test, client: Client): Promise<void> {
  const bucket = 'minio-objects'
  await client.makeBucket(bucket, 'us-east-1')
  await client.makeBucket(bucket)
  t.equal(await client.bucketExists(bucket), true)
  t.equal(await client.bucketExists('no-such-bucket'), false)
  t.ok((await client.listBuckets()).some(({ name }) => name === bucket))
  t.same(await client.getBucketVersioning(bucket), '')

  const data = bytes('object', 150 * KiB)
  const meta = { 'Content-Type': 'x/odd', 'X-Amz-Meta-One': '1', two: 'zwei' }
  const put = await client.putObject(bucket, 'buffer', data, data.length, meta)
  t.equal(put.etag, md5(data))
  await client.putObject(
    bucket,
    'stream',
    Readable.from([data.subarray(0, 7), data.subarray(7)], { objectMode: false }),
    data.length,
  )
  await client.putObject(bucket, 'empty', Buffer.of(), 0)
  await client.putObject(bucket, 'text', 'grüße')
  t.same(await buffer(await client.getObject(bucket, 'buffer')), data)
  t.same(await buffer(await client.getObject(bucket, 'stream')), data)
  t.equal((await buffer(await client.getObject(bucket, 'empty'))).length, 0)
  t.equal((await buffer(await client.getObject(bucket, 'text'))).toString(), 'grüße')
  t.same(await buffer(await client.getPartialObject(bucket, 'buffer', 100, 50)), data.subarray(100, 150))
  t.same(await buffer(await client.getPartialObject(bucket, 'buffer', 100_000)), data.subarray(100_000))
  const stat = await client.statObject(bucket, 'buffer')
  t.match(stat, { size: data.length, etag: md5(data), metaData: { 'content-type': 'x/odd', one: '1', two: 'zwei' } })
  t.ok(stat.lastModified instanceof Date)
  await t.rejects(client.statObject(bucket, 'none'), { code: 'NotFound' })
  await t.rejects(client.getObject(bucket, 'none'), { code: 'NoSuchKey' })

  await client.copyObject(bucket, 'copy', `/${bucket}/buffer`)
  t.match(await client.statObject(bucket, 'copy'), { etag: md5(data), metaData: { one: '1' } })
  const from = new CopySourceOptions({ Bucket: bucket, Object: 'buffer', MatchETag: put.etag })
  const to = new CopyDestinationOptions({
    Bucket: bucket,
    Object: 'copy',
    MetadataDirective: 'REPLACE',
    UserMetadata: { three: '3' },
  })
  await client.copyObject(from, to)
  t.match((await client.statObject(bucket, 'copy')).metaData, { three: '3' })

  await t.rejects(client.removeBucket(bucket), { code: 'BucketNotEmpty' })
  await client.removeObject(bucket, 'copy')
  await client.removeObjects(bucket, ['buffer', 'stream', 'empty', 'text', 'none'])
  await client.removeBucket(bucket)
  await t.rejects(client.removeBucket(bucket), { code: 'NoSuchBucket' })
}

async function multipart(t: Test, client: Client, server: Dealgate): Promise<void> {
  const bucket = 'minio-multi'
  const folder = temporaryFolder(t)
  await client.makeBucket(bucket)
  const data = bytes('file', 17 * MiB)
  const file = join(folder, 'file')
  await writeFile(file, data)
  const put = await client.fPutObject(bucket, 'file', file, { 'X-Amz-Meta-One': '1' })
  t.match(put.etag, /^[0-9a-f]{32}-4$/)
  await client.fGetObject(bucket, 'file', join(folder, 'got'))
  t.equal(await sha256OfFile(join(folder, 'got')), sha256(data))
  t.match(await client.statObject(bucket, 'file'), { size: data.length, etag: put.etag, metaData: { one: '1' } })
  const stream = bytes('stream', 11 * MiB)
  await client.putObject(bucket, 'stream', Readable.from([stream], { objectMode: false }))
  t.equal(sha256(await buffer(await client.getObject(bucket, 'stream'))), sha256(stream), 'a stream of unknown length')

  // minio-js itself loses a Start other than 0.
  const sources = [
    new CopySourceOptions({ Bucket: bucket, Object: 'stream' }),
    new CopySourceOptions({ Bucket: bucket, Object: 'file', MatchRange: true, Start: 0, End: 5 * MiB + 9 }),
  ]
  await client.composeObject(new CopyDestinationOptions({ Bucket: bucket, Object: 'composed' }), sources)
  const composed = Buffer.concat([stream, data.subarray(0, 5 * MiB + 10)])
  t.equal(sha256(await buffer(await client.getObject(bucket, 'composed'))), sha256(composed), 'composeObject')

  await client.initiateNewMultipartUpload(bucket, 'unfinished/one', {})
  await client.initiateNewMultipartUpload(bucket, 'unfinished/two', {})
  const incomplete = (await client.listIncompleteUploads(bucket, '', true).toArray()) as { key: string }[]
  t.same(
    incomplete.map(({ key }) => key),
    ['unfinished/one', 'unfinished/two'],
  )
  await client.removeIncompleteUpload(bucket, 'unfinished/one')
  await client.removeIncompleteUpload(bucket, 'unfinished/two')
  t.same(await client.listIncompleteUploads(bucket, '', true).toArray(), [])
  await client.removeObjects(bucket, ['file', 'stream', 'composed'])
  await client.removeBucket(bucket)
  t.ok(server.running)
}
