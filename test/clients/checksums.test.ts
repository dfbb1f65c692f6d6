import { createHash } from 'node:crypto'
import {
  type ChecksumAlgorithm,
  type ChecksumType,
  type CompletedPart,
  type CompleteMultipartUploadCommandOutput,
  ObjectAttributes,
  type S3,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { checksumAlgorithms, createChecksum, prepareChecksum } from '../../common/checksums/checksums.js'
import { bytes, MiB } from '../support/content/content.js'
import { bodyOf, sdkFor } from '../support/programs/sdk.js'
import { inEachMode } from '../support/server/dealgate.js'

for (const algorithm of checksumAlgorithms) await prepareChecksum(algorithm)

const Bucket = 'sums'
const ALL = Object.values(ObjectAttributes)
const FIVE = 5 * MiB

/*
 * Checksums as the SDK states them and compares them with the bytes that come.
 * test/src/s3/object/checksum-algorithms has the algorithms that it does not know.
 */

inEachMode(t, async (t, server) => {
  // Each test says what it sends.
  const client = sdkFor(t, server, { requestChecksumCalculation: 'WHEN_REQUIRED' })
  await client.createBucket({ Bucket })
  await t.test('of parts, composite', (t) => composite(t, client))
  await t.test('of parts, over the full object', (t) => fullObject(t, client))
  // Records keep the others in the same way with each gateway.
  if (server.mode === 'legacy') return
  await t.test('of an upload that was begun without one', (t) => plain(t, client))
  await t.test('of an object in one piece', (t) => whole(t, client))
  await t.test('that do not fit are refused', (t) => refused(t, client))
})

async function whole(t: Test, client: S3): Promise<void> {
  const object = { Bucket, Key: 'whole' }
  const Body = bytes('whole', 1000)
  const ChecksumCRC32C = sum('CRC32C', Body)
  await client.putObject({ ...object, Body, ChecksumAlgorithm: 'CRC32C' })
  const attributes = (ObjectAttributes: ObjectAttributes[], Key = 'whole') =>
    client.getObjectAttributes({ Bucket, Key, ObjectAttributes })
  t.match(await attributes(ALL), {
    ETag: createHash('md5').update(Body).digest('hex'),
    Checksum: { ChecksumCRC32C, ChecksumType: 'FULL_OBJECT' },
    ObjectParts: undefined,
    StorageClass: 'STANDARD',
    ObjectSize: 1000,
    LastModified: Date,
  })
  t.match(await attributes(['ObjectSize']), { ETag: undefined, Checksum: undefined, ObjectSize: 1000 })
  await t.rejects(attributes(['Colour' as 'ETag']), { name: 'InvalidArgument' })
  await t.rejects(attributes([]), { name: 'InvalidRequest' })
  await t.rejects(attributes(ALL, 'none'), { name: 'NoSuchKey' })

  const enabled = { ...object, ChecksumMode: 'ENABLED' } as const
  t.match(await client.headObject({ ...enabled, PartNumber: 1 }), { ChecksumCRC32C, ChecksumType: 'FULL_OBJECT' })
  t.match(await client.headObject(object), { ChecksumCRC32C: undefined })
  const ranged = await client.getObject({ ...enabled, Range: 'bytes=0-9' })
  t.equal(ranged.ChecksumCRC32C, undefined, 'none goes with a range')
  await ranged.Body?.transformToByteArray()
}

interface Uploaded {
  readonly parts: readonly Buffer[]
  readonly listed: readonly CompletedPart[]
  /** Completes the upload; with other members than its list of parts. */
  complete(more?: object): Promise<CompleteMultipartUploadCommandOutput>
}

async function uploadParts(
  client: S3,
  Key: string,
  ChecksumAlgorithm?: ChecksumAlgorithm,
  ChecksumType?: ChecksumType,
): Promise<Uploaded> {
  const { UploadId } = await client.createMultipartUpload({ Bucket, Key, ChecksumAlgorithm, ChecksumType })
  const upload = { Bucket, Key, UploadId }
  const parts = [bytes(`${Key}1`, FIVE), bytes(`${Key}2`, FIVE), bytes(`${Key}3`, 77)]
  const listed: CompletedPart[] = []
  for (const [i, Body] of parts.entries()) {
    const part = { ...upload, PartNumber: i + 1, Body, ChecksumAlgorithm }
    const { $metadata: _, ...told } = await client.uploadPart(part)
    listed.push({ ...told, PartNumber: i + 1 })
  }
  const complete = (more = {}) =>
    client.completeMultipartUpload({ ...upload, MultipartUpload: { Parts: listed }, ...more })
  return { parts, listed, complete }
}

async function composite(t: Test, client: S3): Promise<void> {
  const Key = 'composite'
  const { parts, listed, complete } = await uploadParts(client, Key, 'SHA256')
  const sums = parts.map((part) => sum('SHA256', part))
  t.same(
    listed.map(({ ChecksumSHA256 }) => ChecksumSHA256),
    sums,
  )
  const value = sum('SHA256', Buffer.concat(sums.map((part) => Buffer.from(part, 'base64'))))
  const bare = listed.map(({ ETag, PartNumber }) => ({ ETag, PartNumber }))
  await t.rejects(complete({ MultipartUpload: { Parts: bare } }), { name: 'InvalidRequest' })
  await t.rejects(complete({ ChecksumType: 'FULL_OBJECT' }), { name: 'InvalidRequest' })
  await t.rejects(complete({ ChecksumSHA256: sums[0] }), { name: 'BadDigest' })
  await t.rejects(complete({ ChecksumCRC32: 'AAAAAA==' }), { name: 'InvalidRequest' })
  const told = { ChecksumSHA256: `${value}-3`, ChecksumType: 'COMPOSITE' }
  t.match(await complete(told), told)

  const enabled = { Bucket, Key, ChecksumMode: 'ENABLED' } as const
  t.match(await client.headObject(enabled), told)
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

  await client.copyObject({ Bucket, Key: 'copy', CopySource: `${Bucket}/${Key}` })
  t.match(await client.headObject({ ...enabled, Key: 'copy' }), {
    ChecksumSHA256: sum('SHA256', Buffer.concat(parts)),
    ChecksumType: 'FULL_OBJECT',
  })
  await client.putObject({ Bucket, Key, Body: 'new' })
  t.equal((await attributes({})).ObjectParts, undefined, 'nothing is left of parts that were overwritten')
}

async function fullObject(t: Test, client: S3): Promise<void> {
  const Key = 'full'
  const { parts, listed, complete } = await uploadParts(client, Key, 'CRC64NVME', 'FULL_OBJECT')
  const whole = { ChecksumCRC64NVME: sum('CRC64NVME', Buffer.concat(parts)), ChecksumType: 'FULL_OBJECT' }
  const Parts = listed.map(({ ETag, PartNumber }) => ({ ETag, PartNumber }))
  t.match(await complete({ MultipartUpload: { Parts }, ...whole }), whole)
  const got = await client.getObject({ Bucket, Key, ChecksumMode: 'ENABLED' })
  t.match(got, whole)
  t.ok(Buffer.concat(parts).equals(Buffer.from((await got.Body?.transformToByteArray()) ?? [])))
  const told = await client.getObjectAttributes({ Bucket, Key, ObjectAttributes: ['Checksum', 'ObjectParts'] })
  t.match(told, { Checksum: whole, ObjectParts: { TotalPartsCount: 3, Parts: { length: 3 } } })
}

async function plain(t: Test, client: S3): Promise<void> {
  const object = { Bucket, Key: 'plain' }
  const { parts, complete } = await uploadParts(client, 'plain')
  await client.putObject({ ...object, Body: 'old' })
  await t.rejects(complete({ ChecksumCRC32: 'AAAAAA==', ChecksumType: 'FULL_OBJECT' }), { name: 'BadDigest' })
  t.equal((await bodyOf(client, object)).toString(), 'old', 'the old object stays')
  const whole = { ChecksumCRC32: sum('CRC32', Buffer.concat(parts)), ChecksumType: 'FULL_OBJECT' }
  t.match(await complete(whole), whole, 'it is compared as it is stored')
  const asked = { ...object, ObjectAttributes: [ObjectAttributes.OBJECT_PARTS], PartNumberMarker: '1', MaxParts: 1 }
  const { ObjectParts } = await client.getObjectAttributes(asked)
  t.same(ObjectParts?.Parts, [{ PartNumber: 2, Size: parts[1]?.length }], 'parts without checksums have sizes')
}

async function refused(t: Test, client: S3): Promise<void> {
  const create = (ChecksumAlgorithm: ChecksumAlgorithm | undefined, ChecksumType: ChecksumType) =>
    client.createMultipartUpload({ Bucket, Key: 'no', ChecksumAlgorithm, ChecksumType })
  await t.rejects(create('SHA256', 'FULL_OBJECT'), { name: 'InvalidRequest' })
  await t.rejects(create('CRC64NVME', 'COMPOSITE'), { name: 'InvalidRequest' })
  await t.rejects(create(undefined, 'COMPOSITE'), { name: 'InvalidRequest' })

  const { UploadId } = await client.createMultipartUpload({ Bucket, Key: 'no', ChecksumAlgorithm: 'CRC32' })
  const part = { Bucket, Key: 'no', UploadId, PartNumber: 1, Body: 'x' }
  await t.rejects(client.uploadPart({ ...part, ChecksumAlgorithm: 'SHA1' }), { name: 'InvalidRequest' })
  const { listed, complete } = await uploadParts(client, 'no', 'CRC32')
  const [one, ...others] = listed
  for (const wrong of [{ ChecksumCRC32: 'AAAAAA==' }, { ChecksumSHA1: '2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }])
    await t.rejects(complete({ MultipartUpload: { Parts: [{ ...one, ...wrong }, ...others] } }), {
      name: 'InvalidPart',
    })
}

function sum(algorithm: ChecksumAlgorithm, data: Buffer): string {
  const checksum = createChecksum(algorithm as 'CRC32')
  checksum.update(data)
  return checksum.digest()
}
