import { randomInt } from 'node:crypto'
import { Readable } from 'node:stream'
import { paginateListObjectsV2, type S3, waitUntilBucketExists, waitUntilObjectExists } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import t, { type Test } from 'tap'
import { bytes, KiB, MiB, md5, sha256 } from '../support/content/content.js'
import { bareKeys, controlKeys, fileKeys, MARKER, type OddKey } from '../support/content/keys.js'
import { bodyOf, sdkFor } from '../support/programs/sdk.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'

/** Writers of one key wait for each other longer than a busy machine takes. */
const options = { args: ['--key-wait-seconds', '600'] }

inEachMode(
  t,
  async (t, server) => {
    const client = sdkFor(t, server)
    await t.test('objects', (t) => objects(t, client))
    await t.test('multipart', (t) => multipart(t, client))
    await t.test('conditions', (t) => conditions(t, client))
    await t.test('odd keys', (t) => oddKeys(t, client, server))
    // The gateway makes no difference to how a body and a signature are read.
    if (server.mode === 'legacy') return
    await t.test('streams', (t) => streams(t, client))
  },
  options,
)

/** Bytes in odd pieces, length unknown to the reader. */
function streamOf(data: Buffer): Readable {
  return Readable.from(
    (function* () {
      for (let at = 0; at < data.length; ) {
        const size = randomInt(1, 100 * KiB)
        yield data.subarray(at, at + size)
        at += size
      }
    })(),
    { objectMode: false },
  )
}

async function objects(t: Test, client: S3): Promise<void> {
  const Bucket = 'sdk-objects'
  const Key = 'an object'
  await client.createBucket({ Bucket })
  t.equal((await client.createBucket({ Bucket })).Location, `/${Bucket}`, 'again, as in us-east-1')
  await waitUntilBucketExists({ client, maxWaitTime: 10 }, { Bucket })
  await client.headBucket({ Bucket })
  t.equal((await client.getBucketLocation({ Bucket })).LocationConstraint, undefined)
  const { Buckets = [] } = await client.listBuckets({})
  t.ok(Buckets.some(({ Name, CreationDate }) => Name === Bucket && CreationDate instanceof Date))
  const Body = bytes('object', 200 * KiB)
  const facts = {
    ...{ ContentType: 'x/odd', CacheControl: 'no-cache', ContentDisposition: 'inline', ContentLanguage: 'de' },
    ...{ ContentEncoding: 'identity', Metadata: { a: '1', 'b-c': 'two' } },
  }
  const Expires = new Date('2031-01-01T00:00:00Z')
  const put = await client.putObject({ Bucket, Key, Body, Expires, ...facts })
  const ETag = `"${md5(Body)}"`
  t.equal(put.ETag, ETag)
  t.ok(put.ChecksumCRC32, 'the default checksum is verified and told')
  await waitUntilObjectExists({ client, maxWaitTime: 10 }, { Bucket, Key })
  const head = await client.headObject({ Bucket, Key, ChecksumMode: 'ENABLED' })
  t.match(head, { ETag, ContentLength: Body.length, ChecksumCRC32: put.ChecksumCRC32, ...facts })
  t.equal(new Date(head.ExpiresString ?? '').getTime(), Expires.getTime())
  t.same(await bodyOf(client, { Bucket, Key }), Body, 'with the checksum verified on the way')
  t.same(await bodyOf(client, { Bucket, Key, Range: 'bytes=1000-1999' }), Body.subarray(1000, 2000))
  t.same(await bodyOf(client, { Bucket, Key, Range: 'bytes=-1' }), Body.subarray(-1))
  await t.rejects(bodyOf(client, { Bucket, Key, Range: `bytes=${Body.length}-` }), { name: 'InvalidRange' })

  const wrong = { Bucket, Key, Body: 'x', ChecksumCRC32: 'AAAAAA==' }
  await t.rejects(client.putObject(wrong), { name: 'BadDigest' })

  const CopySource = `${Bucket}/${encodeURIComponent(Key)}`
  t.equal((await client.copyObject({ Bucket, Key: 'copy', CopySource })).CopyObjectResult?.ETag, ETag)
  t.match(await client.headObject({ Bucket, Key: 'copy' }), { ETag, ...facts })
  const onto = { Bucket, Key, CopySource, MetadataDirective: 'REPLACE', Metadata: { new: 'yes' } } as const
  await client.copyObject(onto)
  t.match(await client.headObject({ Bucket, Key }), { ETag, Metadata: { new: 'yes' } })
  t.same(await bodyOf(client, { Bucket, Key }), Body)

  await t.rejects(bodyOf(client, { Bucket, Key: 'none' }), { name: 'NoSuchKey' })
  await t.rejects(client.headObject({ Bucket, Key: 'none' }), { name: 'NotFound' })
  await t.rejects(client.deleteBucket({ Bucket }), { name: 'BucketNotEmpty' })
  await emptied(client, Bucket)
}

async function streams(t: Test, client: S3): Promise<void> {
  const Bucket = 'sdk-streams'
  await client.createBucket({ Bucket })
  // A stream goes out in aws-chunked framing with a trailer, also over plain HTTP. Without a length the SDK cannot send
  // one: that is what Upload is for.
  for (const [Key, size] of Object.entries({ empty: 0, small: 3 * KiB, bigger: 3 * MiB + 1 })) {
    const data = bytes(Key, size)
    await client.putObject({ Bucket, Key, Body: streamOf(data), ContentLength: size })
    const head = await client.headObject({ Bucket, Key })
    t.match(head, { ContentLength: size, ETag: `"${md5(data)}"` })
    t.equal(head.ContentEncoding, undefined, 'aws-chunked is the transfer’s encoding, not the object’s')
    t.equal(sha256(await bodyOf(client, { Bucket, Key })), sha256(data), `a stream of ${size} bytes`)
  }
  // Each piece becomes a chunk of its own: https://github.com/aws/aws-sdk-js-v3/issues/7509
  const lines = Array.from({ length: 300 }, (_, line) => Buffer.from(`line ${line}\n`))
  const ContentLength = Buffer.concat(lines).length
  await client.putObject({ Bucket, Key: 'lines', Body: Readable.from(lines), ContentLength })
  t.same(await bodyOf(client, { Bucket, Key: 'lines' }), Buffer.concat(lines), 'a stream of small pieces')

  await emptied(client, Bucket)
}

async function multipart(t: Test, client: S3): Promise<void> {
  const Bucket = 'sdk-multi'
  await client.createBucket({ Bucket })
  const uploading = (Key: string, data: Buffer) => {
    const params = { Bucket, Key, Body: streamOf(data), Metadata: { up: 'loaded' } }
    return new Upload({ client, params, queueSize: 4, partSize: 5 * MiB })
  }
  for (const [Key, size] of Object.entries({ small: 10, parts: 17 * MiB + 5 })) {
    const data = bytes(Key, size)
    const { ETag } = await uploading(Key, data).done()
    t.match(ETag, size > 5 * MiB ? /^"[0-9a-f]{32}-4"$/ : `"${md5(data)}"`)
    const head = await client.headObject({ Bucket, Key })
    t.match(head, { ContentLength: size, Metadata: { up: 'loaded' }, ETag })
    t.equal(sha256(await bodyOf(client, { Bucket, Key })), sha256(data), `Upload of ${size} bytes of unknown length`)
  }
  const aborting = uploading('aborted', bytes('aborted', 12 * MiB))
  aborting.on('httpUploadProgress', () => aborting.abort())
  await t.rejects(aborting.done(), { name: 'AbortError' })
  await t.rejects(bodyOf(client, { Bucket, Key: 'aborted' }), { name: 'NoSuchKey' })

  const Key = 'by hand'
  const { UploadId } = await client.createMultipartUpload({ Bucket, Key })
  const upload = { Bucket, Key, UploadId }
  const first = bytes('first', 5 * MiB)
  const one = await client.uploadPart({ ...upload, PartNumber: 1, Body: first })
  const CopySource = `${Bucket}/parts`
  const two = await client.uploadPartCopy({ ...upload, PartNumber: 2, CopySource, CopySourceRange: 'bytes=100-199' })
  const Parts = [
    { PartNumber: 1, ETag: one.ETag },
    { PartNumber: 2, ETag: two.CopyPartResult?.ETag },
  ]
  t.match((await client.listParts(upload)).Parts, [
    { ...Parts[0], Size: first.length },
    { ...Parts[1], Size: 100 },
  ])
  const uploadsOf = async () => (await client.listMultipartUploads({ Bucket, Prefix: Key })).Uploads
  t.match(await uploadsOf(), [{ Key, UploadId }])
  const third = await client.uploadPart({ ...upload, PartNumber: 3, Body: 'x' })
  const tooSmall = [...Parts.slice(1), { PartNumber: 3, ETag: third.ETag }]
  await t.rejects(client.completeMultipartUpload({ ...upload, MultipartUpload: { Parts: tooSmall } }), {
    name: 'EntityTooSmall',
  })
  await client.completeMultipartUpload({ ...upload, MultipartUpload: { Parts } })
  const whole = Buffer.concat([first, bytes('parts', 200).subarray(100)])
  t.equal(sha256(await bodyOf(client, { Bucket, Key })), sha256(whole))
  t.equal(await uploadsOf(), undefined)
  await emptied(client, Bucket)
}

async function conditions(t: Test, client: S3): Promise<void> {
  const Bucket = 'sdk-conditions'
  const Key = 'k'
  await client.createBucket({ Bucket })
  const { ETag } = await client.putObject({ Bucket, Key, Body: '1', IfNoneMatch: '*' })
  await t.rejects(client.putObject({ Bucket, Key, Body: '2', IfNoneMatch: '*' }), { name: 'PreconditionFailed' })
  await client.putObject({ Bucket, Key, Body: '3', IfMatch: ETag })
  await t.rejects(client.putObject({ Bucket, Key, Body: '4', IfMatch: ETag }), { name: 'PreconditionFailed' })
  t.equal((await bodyOf(client, { Bucket, Key })).toString(), '3')
  await t.rejects(client.putObject({ Bucket, Key: 'no', Body: '', IfMatch: ETag }), { name: 'NoSuchKey' })
  await t.rejects(bodyOf(client, { Bucket, Key, IfMatch: ETag }), { name: 'PreconditionFailed' })
  const { ETag: now } = await client.headObject({ Bucket, Key })
  const unchanged = await client.getObject({ Bucket, Key, IfNoneMatch: now }).catch((error) => error)
  t.match(unchanged, { $metadata: { httpStatusCode: 304 } })
  await t.rejects(client.deleteObject({ Bucket, Key, IfMatch: ETag }), { name: 'PreconditionFailed' })

  const upload = await client.createMultipartUpload({ Bucket, Key })
  const on = { Bucket, Key, UploadId: upload.UploadId }
  const part = await client.uploadPart({ ...on, PartNumber: 1, Body: 'part' })
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: part.ETag }] }
  const asNew = { ...on, MultipartUpload, IfNoneMatch: '*' }
  await t.rejects(client.completeMultipartUpload(asNew), { name: 'PreconditionFailed' })
  await client.completeMultipartUpload({ ...on, MultipartUpload, IfMatch: now })
  t.equal((await bodyOf(client, { Bucket, Key })).toString(), 'part')
  await emptied(client, Bucket)
}

async function oddKeys(t: Test, client: S3, server: Dealgate): Promise<void> {
  const Bucket = 'sdk-keys'
  await client.createBucket({ Bucket })
  const keys: readonly OddKey[] = [
    ...[...fileKeys, ...controlKeys].map((key) => ({ key })),
    ...[...bareKeys, { key: 'nul\u0000', legacyRefusal: /NUL/ }],
  ]
  const held: string[] = []
  for (const { key: Key, legacyRefusal } of keys) {
    const object = { Bucket, Key }
    const Body = bytes(Key, 64)
    if (server.mode === 'legacy' && legacyRefusal) {
      const refusal = { name: 'InvalidArgument', message: legacyRefusal }
      await t.rejects(client.putObject({ ...object, Body }), refusal, `says why ${Key} cannot be`)
      await t.rejects(client.createMultipartUpload(object), refusal, 'at the start of an upload')
      await t.rejects(bodyOf(client, object), { name: 'NoSuchKey' })
      await client.deleteObject(object)
      continue
    }
    await client.putObject({ ...object, Body })
    t.same(await bodyOf(client, object), Body, Key)
    await client.copyObject({ Bucket, Key: `${Key}.copy`, CopySource: `${Bucket}/${encodeURIComponent(Key)}` })
    held.push(Key, `${Key}.copy`)
  }
  await client.putObject({ Bucket, Key: MARKER })
  await client.putObject({ Bucket, Key: `${MARKER}inside`, Body: 'x' })
  held.push(MARKER, `${MARKER}inside`)
  const seen: string[] = []
  for await (const page of paginateListObjectsV2({ client, pageSize: 9 }, { Bucket, EncodingType: 'url' }))
    for (const { Key = '' } of page.Contents ?? []) seen.push(decodeURIComponent(Key))
  t.same(
    seen,
    held.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
  )
  await client.deleteObject({ Bucket, Key: MARKER })
  const inside = await bodyOf(client, { Bucket, Key: `${MARKER}inside` })
  t.equal(inside.toString(), 'x', 'deleting the marker leaves the folder')
  await client.deleteObject({ Bucket, Key: `${MARKER}inside` })
  await t.rejects(bodyOf(client, { Bucket, Key: MARKER }), { name: 'NoSuchKey' }, 'and it does not come back')
  await client.putObject({ Bucket, Key: 'outer/inner/', ContentType: 'x/folder' })
  await client.putObject({ Bucket, Key: 'outer/inner/deep/x', Body: 'x' })
  await client.deleteObject({ Bucket, Key: 'outer/inner/deep/x' })
  t.match(await client.headObject({ Bucket, Key: 'outer/inner/' }), { ContentType: 'x/folder' }, 'the marker stays')

  await client.putObject({ Bucket, Key: 'both', Body: '1' })
  await client.putObject({ Bucket, Key: 'way/down', Body: '1' })
  for (const Key of ['both/of-them', 'way']) {
    const sent = client.putObject({ Bucket, Key, Body: '2' })
    if (server.mode === 'full') await sent
    else await t.rejects(sent, { message: /object and a folder of the same name/ })
  }
  for (const Key of ['both', 'way/down']) t.equal((await bodyOf(client, { Bucket, Key })).toString(), '1')
  await emptied(client, Bucket)
}

async function emptied(client: S3, Bucket: string): Promise<void> {
  for await (const { Contents } of paginateListObjectsV2({ client }, { Bucket, EncodingType: 'url' })) {
    const Objects = Contents?.map(({ Key = '' }) => ({ Key: decodeURIComponent(Key) })) ?? []
    // XML cannot carry these in a request.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that XML cannot hold
    const single = Objects.filter(({ Key }) => /[\x00-\x1f]/.test(Key))
    for (const { Key } of single) await client.deleteObject({ Bucket, Key })
    const rest = Objects.filter((object) => !single.includes(object))
    if (rest.length > 0) await client.deleteObjects({ Bucket, Delete: { Objects: rest, Quiet: true } })
  }
  await client.deleteBucket({ Bucket })
}
