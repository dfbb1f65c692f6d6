import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { Client, CopyDestinationOptions, CopySourceOptions } from 'minio'
import t from 'tap'
import { bytes, KiB, MiB, md5, sha256, sha256OfFile } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startDealgate } from '../support/server/dealgate.js'

// What a gateway makes of the same requests is shown by sdk-v3, in both modes.
const server = await startDealgate(t)
const { accessKey, secretKey, region } = server
const { hostname: endPoint, port } = new URL(server.endpoint)
const retryOptions = { disableRetry: true }
const address = { endPoint, port: Number(port), useSSL: false }
const client = new Client({ ...address, accessKey, secretKey, region, retryOptions, partSize: 5 * MiB })
const read = async (bucket: string, key: string) => buffer(await client.getObject(bucket, key))

t.test('objects', async (t) => {
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
  const stream = Readable.from([data.subarray(0, 7), data.subarray(7)], { objectMode: false })
  await client.putObject(bucket, 'stream', stream, data.length)
  await client.putObject(bucket, 'text', 'grüße')
  t.same(await read(bucket, 'buffer'), data)
  t.same(await read(bucket, 'stream'), data)
  t.equal((await read(bucket, 'text')).toString(), 'grüße')
  t.same(await buffer(await client.getPartialObject(bucket, 'buffer', 100, 50)), data.subarray(100, 150))
  const stat = await client.statObject(bucket, 'buffer')
  t.match(stat, { size: data.length, etag: md5(data), metaData: { 'content-type': 'x/odd', one: '1', two: 'zwei' } })
  await t.rejects(client.statObject(bucket, 'none'), { code: 'NotFound' })
  await t.rejects(client.getObject(bucket, 'none'), { code: 'NoSuchKey' })

  const from = new CopySourceOptions({ Bucket: bucket, Object: 'buffer', MatchETag: put.etag })
  const copied = { Bucket: bucket, Object: 'copy', MetadataDirective: 'REPLACE', UserMetadata: { three: '3' } } as const
  await client.copyObject(from, new CopyDestinationOptions(copied))
  t.match(await client.statObject(bucket, 'copy'), { etag: md5(data), metaData: { three: '3' } })
  await t.rejects(client.removeBucket(bucket), { code: 'BucketNotEmpty' })
  await client.removeObjects(bucket, ['buffer', 'stream', 'text', 'copy', 'none'])
  await client.removeBucket(bucket)
})

t.test('multipart', async (t) => {
  const bucket = 'minio-multi'
  const folder = temporaryFolder(t)
  await client.makeBucket(bucket)
  const data = bytes('file', 17 * MiB)
  await writeFile(join(folder, 'file'), data)
  const put = await client.fPutObject(bucket, 'file', join(folder, 'file'), { 'X-Amz-Meta-One': '1' })
  t.match(put.etag, /^[0-9a-f]{32}-4$/)
  await client.fGetObject(bucket, 'file', join(folder, 'got'))
  t.equal(await sha256OfFile(join(folder, 'got')), sha256(data))
  t.match(await client.statObject(bucket, 'file'), { size: data.length, etag: put.etag, metaData: { one: '1' } })
  const stream = bytes('stream', 11 * MiB)
  await client.putObject(bucket, 'stream', Readable.from([stream], { objectMode: false }))
  t.equal(sha256(await read(bucket, 'stream')), sha256(stream), 'a stream of unknown length')

  // minio-js itself loses a Start other than 0.
  const sources = [
    new CopySourceOptions({ Bucket: bucket, Object: 'stream' }),
    new CopySourceOptions({ Bucket: bucket, Object: 'file', MatchRange: true, Start: 0, End: 5 * MiB + 9 }),
  ]
  await client.composeObject(new CopyDestinationOptions({ Bucket: bucket, Object: 'composed' }), sources)
  const composed = Buffer.concat([stream, data.subarray(0, 5 * MiB + 10)])
  t.equal(sha256(await read(bucket, 'composed')), sha256(composed), 'composeObject')

  const incomplete = () => client.listIncompleteUploads(bucket, '', true).toArray()
  await client.initiateNewMultipartUpload(bucket, 'unfinished', {})
  t.match(await incomplete(), [{ key: 'unfinished' }])
  await client.removeIncompleteUpload(bucket, 'unfinished')
  t.same(await incomplete(), [])
})
