import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  type ChecksumAlgorithm,
  type ChecksumType,
  type CompletedPart,
  ObjectAttributes,
  type S3,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { checksumAlgorithms, createChecksum, prepareChecksum } from '../../src/common/checksums/checksums.js'
import { bytes, MiB } from '../support/content/content.js'
import { sdkFor } from '../support/programs/sdk.js'
import { inEachMode } from '../support/server/dealgate.js'

for (const algorithm of checksumAlgorithms) await prepareChecksum(algorithm)

const Bucket = 'sums'
const ALL = Object.values(ObjectAttributes)
const FIVE = 5 * MiB

inEachMode(t, async (t, server) => {
  // Each test says what it sends.
  const client = sdkFor(t, server, { requestChecksumCalculation: 'WHEN_REQUIRED' })
  await client.createBucket({ Bucket })
  await t.test('of parts, composite', (t) => composite(t, client))
  await t.test('of parts, over the full object', (t) => fullObject(t, client))
  // Records keep the others in the same way with each gateway.
  if (server.mode === 'legacy') return
  await t.test('of an object in one piece', (t) => whole(t, client))
  await t.test('that do not fit are refused', (t) => refused(t, client))
})

async function whole(t: Test, client: S3): Promise<void> {
  const Body = bytes('whole', 1000)
  await client.putObject({ Bucket, Key: 'whole', Body, ChecksumAlgorithm: 'CRC32C' })
  const ChecksumCRC32C = sum('CRC32C', Body)
  const told = await client.getObjectAttributes({ Bucket, Key: 'whole', ObjectAttributes: ALL })
  t.match(told, {
    ETag: createHash('md5').update(Body).digest('hex'),
    Checksum: { ChecksumCRC32C, ChecksumType: 'FULL_OBJECT' },
    ObjectParts: undefined,
    StorageClass: 'STANDARD',
    ObjectSize: 1000,
    LastModified: Date,
  })
  const some = await client.getObjectAttributes({ Bucket, Key: 'whole', ObjectAttributes: ['ObjectSize'] })
  t.match(some, { ETag: undefined, Checksum: undefined, StorageClass: undefined, ObjectSize: 1000 })
  const enabled = { Bucket, Key: 'whole', ChecksumMode: 'ENABLED' } as const
  t.match(await client.headObject(enabled), { ChecksumCRC32C, ChecksumType: 'FULL_OBJECT' })
  t.match(await client.headObject({ ...enabled, PartNumber: 1 }), { ChecksumCRC32C })
  t.match(await client.headObject({ Bucket, Key: 'whole' }), { ChecksumCRC32C: undefined })
  const ranged = await client.getObject({ ...enabled, Range: 'bytes=0-9' })
  t.equal(ranged.ChecksumCRC32C, undefined, 'none goes with a range')
  await ranged.Body?.transformToByteArray()

  await rejects(
    t,
    client.getObjectAttributes({ Bucket, Key: 'whole', ObjectAttributes: ['Colour' as 'ETag'] }),
    'InvalidArgument',
  )
  await rejects(t, client.getObjectAttributes({ Bucket, Key: 'whole', ObjectAttributes: [] }), 'InvalidRequest')
  await rejects(t, client.getObjectAttributes({ Bucket, Key: 'none', ObjectAttributes: ALL }), 'NoSuchKey')
}

interface Uploaded {
  readonly parts: readonly Buffer[]
  readonly listed: readonly CompletedPart[]
  readonly UploadId: string
}

async function uploadParts(
  client: S3,
  Key: string,
  algorithm: ChecksumAlgorithm | undefined,
  type?: ChecksumType,
): Promise<Uploaded> {
  const created = await client.createMultipartUpload({ Bucket, Key, ChecksumAlgorithm: algorithm, ChecksumType: type })
  const UploadId = created.UploadId ?? ''
  const parts = [bytes(`${Key}1`, FIVE), bytes(`${Key}2`, FIVE), bytes(`${Key}3`, 77)]
  const listed: CompletedPart[] = []
  for (const [i, Body] of parts.entries()) {
    const { $metadata: _, ...told } = await client.uploadPart({
      Bucket,
      Key,
      UploadId,
      PartNumber: i + 1,
      Body,
      ChecksumAlgorithm: algorithm,
    })
    listed.push({ ...told, PartNumber: i + 1 })
  }
  return { parts, listed, UploadId }
}

async function composite(t: Test, client: S3): Promise<void> {
  const Key = 'composite'
  const { parts, listed, UploadId } = await uploadParts(client, Key, 'SHA256')
  const sums = parts.map((part) => sum('SHA256', part))
  t.same(
    listed.map(({ ChecksumSHA256 }) => ChecksumSHA256),
    sums,
  )
  const value = createHash('sha256')
    .update(Buffer.concat(sums.map((part) => Buffer.from(part, 'base64'))))
    .digest('base64')
  const complete = (more: object) =>
    client.completeMultipartUpload({ Bucket, Key, UploadId, MultipartUpload: { Parts: [...listed] }, ...more })
  await rejects(
    t,
    complete({ MultipartUpload: { Parts: listed.map(({ ETag, PartNumber }) => ({ ETag, PartNumber })) } }),
    'InvalidRequest',
  )
  await rejects(t, complete({ ChecksumType: 'FULL_OBJECT' }), 'InvalidRequest')
  await rejects(t, complete({ ChecksumSHA256: sums[0] }), 'BadDigest')
  await rejects(t, complete({ ChecksumCRC32: 'AAAAAA==' }), 'InvalidRequest')
  const done = await complete({ ChecksumSHA256: `${value}-3`, ChecksumType: 'COMPOSITE' })
  t.match(done, { ChecksumSHA256: `${value}-3`, ChecksumType: 'COMPOSITE' })

  const enabled = { Bucket, Key, ChecksumMode: 'ENABLED' } as const
  t.match(await client.headObject(enabled), { ChecksumSHA256: `${value}-3`, ChecksumType: 'COMPOSITE' })
  for (const [i, part] of parts.entries()) {
    // The SDK compares the bytes with the checksum that comes with them.
    const got = await client.getObject({ ...enabled, PartNumber: i + 1 })
    t.match(got, { ChecksumSHA256: sums[i], PartsCount: 3 })
    t.ok(part.equals(Buffer.from((await got.Body?.transformToByteArray()) ?? [])))
  }
  const attributes = (more: object) =>
    client.getObjectAttributes({ Bucket, Key, ObjectAttributes: ['Checksum', 'ObjectParts'], ...more })
  t.match(await attributes({}), {
    Checksum: { ChecksumSHA256: value, ChecksumType: 'COMPOSITE' },
    ObjectParts: {
      TotalPartsCount: 3,
      IsTruncated: false,
      Parts: parts.map((part, i) => ({ PartNumber: i + 1, Size: part.length, ChecksumSHA256: sums[i] })),
    },
  })
  const first = await attributes({ MaxParts: 2 })
  t.match(first.ObjectParts, { IsTruncated: true, NextPartNumberMarker: '2', MaxParts: 2, Parts: { length: 2 } })
  const rest = await attributes({ MaxParts: 2, PartNumberMarker: first.ObjectParts?.NextPartNumberMarker })
  t.match(rest.ObjectParts, { IsTruncated: false, PartNumberMarker: '2', Parts: [{ PartNumber: 3 }] })
  t.equal(rest.ObjectParts?.Parts?.length, 1)

  await client.copyObject({ Bucket, Key: 'copy', CopySource: `${Bucket}/${Key}` })
  t.match(await client.headObject({ ...enabled, Key: 'copy' }), {
    ChecksumSHA256: sum('SHA256', Buffer.concat(parts)),
    ChecksumType: 'FULL_OBJECT',
  })

  await client.putObject({ Bucket, Key, Body: 'new' })
  t.equal((await attributes({})).ObjectParts, undefined, 'nothing is left of parts that were overwritten')
}

async function fullObject(t: Test, client: S3): Promise<void> {
  for (const algorithm of ['CRC32', 'CRC64NVME'] as const) {
    const Key = `full-${algorithm}`
    const { parts, listed, UploadId } = await uploadParts(client, Key, algorithm, 'FULL_OBJECT')
    const value = sum(algorithm, Buffer.concat(parts))
    const done = await client.completeMultipartUpload({
      Bucket,
      Key,
      UploadId,
      MultipartUpload: { Parts: listed.map(({ ETag, PartNumber }) => ({ ETag, PartNumber })) },
      [`Checksum${algorithm}`]: value,
      ChecksumType: 'FULL_OBJECT',
    })
    t.match(done, { [`Checksum${algorithm}`]: value, ChecksumType: 'FULL_OBJECT' })
    const got = await client.getObject({ Bucket, Key, ChecksumMode: 'ENABLED' })
    t.match(got, { [`Checksum${algorithm}`]: value, ChecksumType: 'FULL_OBJECT' })
    t.ok(Buffer.concat([...parts]).equals(Buffer.from((await got.Body?.transformToByteArray()) ?? [])))
    const told = await client.getObjectAttributes({ Bucket, Key, ObjectAttributes: ['Checksum', 'ObjectParts'] })
    t.match(told, {
      Checksum: { [`Checksum${algorithm}`]: value, ChecksumType: 'FULL_OBJECT' },
      ObjectParts: { TotalPartsCount: 3, Parts: { length: 3 } },
    })
  }

  const { parts, listed, UploadId } = await uploadParts(client, 'plain', undefined)
  const complete = (ChecksumCRC32: string) =>
    client.completeMultipartUpload({
      Bucket,
      Key: 'plain',
      UploadId,
      MultipartUpload: { Parts: [...listed] },
      ChecksumCRC32,
      ChecksumType: 'FULL_OBJECT',
    })
  await client.putObject({ Bucket, Key: 'plain', Body: 'old' })
  await rejects(t, complete('AAAAAA=='), 'BadDigest')
  const old = await client.getObject({ Bucket, Key: 'plain' })
  t.equal(await old.Body?.transformToString(), 'old', 'the old object stays')
  const value = Buffer.alloc(4)
  value.writeUInt32BE(crc32(Buffer.concat([...parts])))
  const done = await complete(value.toString('base64'))
  t.equal(
    done.ChecksumCRC32,
    value.toString('base64'),
    'an upload begun without a checksum is compared as it is stored',
  )
  const asked = { Bucket, Key: 'plain', ObjectAttributes: ['ObjectParts' as const] }
  const { ObjectParts: told } = await client.getObjectAttributes({ ...asked, PartNumberMarker: '1', MaxParts: 1 })
  t.match(told, { TotalPartsCount: 3, IsTruncated: true, NextPartNumberMarker: '2' })
  t.same(told?.Parts, [{ PartNumber: 2, Size: parts[1]?.length }], 'parts without checksums have sizes')
}

async function refused(t: Test, client: S3): Promise<void> {
  const create = (ChecksumAlgorithm: ChecksumAlgorithm | undefined, ChecksumType: ChecksumType) =>
    client.createMultipartUpload({ Bucket, Key: 'no', ChecksumAlgorithm, ChecksumType })
  await rejects(t, create('SHA256', 'FULL_OBJECT'), 'InvalidRequest')
  await rejects(t, create('CRC64NVME', 'COMPOSITE'), 'InvalidRequest')
  await rejects(t, create(undefined, 'COMPOSITE'), 'InvalidRequest')

  const { listed, UploadId } = await uploadParts(client, 'no', 'CRC32')
  const upload = { Bucket, Key: 'no', UploadId }
  await rejects(
    t,
    client.uploadPart({ ...upload, PartNumber: 4, Body: 'x', ChecksumAlgorithm: 'SHA1' }),
    'InvalidRequest',
  )
  const [one, ...others] = listed
  for (const wrong of [{ ChecksumCRC32: 'AAAAAA==' }, { ChecksumSHA1: '2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }]) {
    await rejects(
      t,
      client.completeMultipartUpload({ ...upload, MultipartUpload: { Parts: [{ ...one, ...wrong }, ...others] } }),
      'InvalidPart',
    )
  }
  await client.abortMultipartUpload(upload)
}

function sum(algorithm: ChecksumAlgorithm, data: Buffer): string {
  const checksum = createChecksum(algorithm as 'CRC32')
  checksum.update(data)
  return checksum.digest()
}

async function rejects(t: Test, sent: Promise<unknown>, name: string): Promise<void> {
  await t.rejects(sent, { name })
}
