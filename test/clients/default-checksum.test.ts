import { createHash } from 'node:crypto'
import type { CompletedPart, ObjectAttributes, S3 } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { createChecksum } from '../../common/checksums/checksums.js'
import { bytes, MiB } from '../support/content/content.js'
import { sdkFor } from '../support/programs/sdk.js'
import { inEachMode } from '../support/server/dealgate.js'

/*
 * The checksum that S3 computes for an object that comes without one:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
 */

const Bucket = 'defaults'
const FIVE = 5 * MiB

inEachMode(t, async (t, server) => {
  const client = sdkFor(t, server, {
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  await client.createBucket({ Bucket })
  await t.test('of an object in one piece', (t) => whole(t, client))
  await t.test('of copies', (t) => copies(t, client))
  await t.test('of parts', (t) => parts(t, client))
  await t.test('of parts of which one has another checksum', (t) => mixed(t, client))
  await t.test('none of an object with a key of the client', (t) => secret(t, client))
})

async function whole(t: Test, client: S3): Promise<void> {
  // Above and below the size up to which a body is collected.
  for (const size of [0, 1, 300_000]) {
    const Key = `whole-${size}`
    const Body = bytes(Key, size)
    const told = toldOf(Body)
    const ContentMD5 = createHash('md5').update(Body).digest('base64')
    t.match(await client.putObject({ Bucket, Key, Body, ContentMD5 }), told)
    t.match(await client.headObject({ Bucket, Key, ChecksumMode: 'ENABLED' }), told)
    t.equal((await client.headObject({ Bucket, Key })).ChecksumCRC64NVME, undefined, 'only for those who ask')
    const ObjectAttributes: ObjectAttributes[] = ['Checksum']
    t.match(await client.getObjectAttributes({ Bucket, Key, ObjectAttributes }), { Checksum: told })
    const { Contents } = await client.listObjectsV2({ Bucket, Prefix: Key })
    t.match(Contents, [{ Key, ChecksumAlgorithm: ['CRC64NVME'], ChecksumType: 'FULL_OBJECT' }])
  }
  const Body = 'x'
  const { ChecksumCRC64NVME, ChecksumSHA1 } = await client.putObject({
    Bucket,
    Key: 'other',
    Body,
    ChecksumAlgorithm: 'SHA1',
  })
  t.match({ ChecksumCRC64NVME, ChecksumSHA1 }, { ChecksumCRC64NVME: undefined, ChecksumSHA1: String })
}

async function copies(t: Test, client: S3): Promise<void> {
  const Body = bytes('source', 1000)
  const source = { Bucket, Key: 'source' }
  await client.putObject({ ...source, Body, Metadata: { colour: 'red' } })
  const told = toldOf(Body)
  const copied = await client.copyObject({ Bucket, Key: 'copy', CopySource: `${Bucket}/source` })
  t.match(copied.CopyObjectResult, told)
  t.match(await client.headObject({ Bucket, Key: 'copy', ChecksumMode: 'ENABLED' }), told)

  const self = { ...source, CopySource: `${Bucket}/source` }
  await t.rejects(client.copyObject(self), { name: 'InvalidRequest' })
  const ChecksumSHA256 = createHash('sha256').update(Body).digest('base64')
  const added = await client.copyObject({ ...self, ChecksumAlgorithm: 'SHA256' })
  t.match(added.CopyObjectResult, { ChecksumSHA256, ChecksumType: 'FULL_OBJECT' })
  t.match(await client.headObject({ ...source, ChecksumMode: 'ENABLED' }), {
    ChecksumSHA256,
    ChecksumCRC64NVME: undefined,
    Metadata: { colour: 'red' },
  })
}

async function parts(t: Test, client: S3): Promise<void> {
  const object = { Bucket, Key: 'parts' }
  const bodies = [bytes('one', FIVE), bytes('two', 77)]
  const { UploadId, ChecksumAlgorithm } = await client.createMultipartUpload(object)
  t.equal(ChecksumAlgorithm, undefined)
  const upload = { ...object, UploadId }
  const listed: CompletedPart[] = []
  for (const [i, Body] of bodies.entries()) {
    const { ETag, ChecksumCRC64NVME } = await client.uploadPart({ ...upload, PartNumber: i + 1, Body })
    t.equal(ChecksumCRC64NVME, crcOf(Body))
    listed.push({ ETag, ChecksumCRC64NVME, PartNumber: i + 1 })
  }
  const { Parts } = await client.listParts(upload)
  t.equal(Parts?.[0]?.ChecksumCRC64NVME, undefined, 'the list of parts has none')
  const complete = (Parts: CompletedPart[]) => client.completeMultipartUpload({ ...upload, MultipartUpload: { Parts } })
  const [first, last] = listed
  const wrong = { ...last, ChecksumCRC64NVME: first?.ChecksumCRC64NVME }
  await t.rejects(complete([...listed.slice(0, 1), wrong]), { name: 'InvalidPart' })
  const told = toldOf(Buffer.concat(bodies))
  const done = await complete(listed)
  t.match(done, told)
  t.match(await complete(listed), { ...told, ETag: done.ETag }, 'the same answer again')
  t.match(await client.headObject({ ...object, ChecksumMode: 'ENABLED' }), told)
}

async function mixed(t: Test, client: S3): Promise<void> {
  const object = { Bucket, Key: 'mixed' }
  const bodies = [bytes('three', FIVE), bytes('four', 77)] as const
  const { UploadId } = await client.createMultipartUpload(object)
  const upload = { ...object, UploadId }
  await client.putObject({ Bucket, Key: 'part', Body: bodies[1] })
  const one = await client.uploadPart({ ...upload, PartNumber: 1, Body: bodies[0], ChecksumAlgorithm: 'CRC32' })
  t.match(one, { ChecksumCRC32: String })
  const two = await client.uploadPartCopy({ ...upload, PartNumber: 2, CopySource: `${Bucket}/part` })
  t.match(two.CopyPartResult, { ETag: String })
  t.equal(two.CopyPartResult?.ChecksumCRC64NVME, undefined)
  const Parts = [one.ETag, two.CopyPartResult?.ETag].map((ETag, i) => ({ ETag, PartNumber: i + 1 }))
  const told = toldOf(Buffer.concat(bodies))
  t.match(await client.completeMultipartUpload({ ...upload, MultipartUpload: { Parts } }), told)
  t.match(await client.headObject({ ...object, ChecksumMode: 'ENABLED' }), told)
}

/** Its CRC would tell whether its content is that of a known file. */
async function secret(t: Test, client: S3): Promise<void> {
  const key = Buffer.alloc(32, 7)
  const customer = {
    SSECustomerAlgorithm: 'AES256',
    SSECustomerKey: key.toString('base64'),
    SSECustomerKeyMD5: createHash('md5').update(key).digest('base64'),
  }
  const object = { Bucket, Key: 'secret', ...customer }
  t.equal((await client.putObject({ ...object, Body: 'secret' })).ChecksumCRC64NVME, undefined)
  t.equal((await client.headObject({ ...object, ChecksumMode: 'ENABLED' })).ChecksumCRC64NVME, undefined)
  const { UploadId } = await client.createMultipartUpload(object)
  const upload = { ...object, UploadId }
  const part = await client.uploadPart({ ...upload, PartNumber: 1, Body: 'secret' })
  t.equal(part.ChecksumCRC64NVME, undefined)
  const MultipartUpload = { Parts: [{ ETag: part.ETag, PartNumber: 1 }] }
  const done = await client.completeMultipartUpload({ ...upload, MultipartUpload })
  t.match(done, { ETag: String, ChecksumCRC64NVME: undefined })
}

function toldOf(body: Buffer) {
  return { ChecksumCRC64NVME: crcOf(body), ChecksumType: 'FULL_OBJECT' }
}

function crcOf(body: Buffer): string {
  const checksum = createChecksum('CRC64NVME')
  checksum.update(body)
  return checksum.digest()
}
