import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectAttributesCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { inEachMode, startDealgate } from '../support/server/dealgate.js'

// STANDARD_IA and its like only name a price: objects keep them as labels, as clients expect that compare them.

function clientOf(t: Test, { endpoint, region, accessKey, secretKey }: Endpoint): S3Client {
  const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey }
  const client = new S3Client({ endpoint, region, forcePathStyle: true, credentials })
  t.teardown(() => client.destroy())
  return client
}

inEachMode(t, async (t, server) => {
  const s3 = clientOf(t, server)
  const at = (Key: string) => ({ Bucket: 'box', Key })
  const classOf = async (key: string) => (await s3.send(new HeadObjectCommand(at(key)))).StorageClass
  await s3.send(new CreateBucketCommand({ Bucket: 'box' }))

  await s3.send(new PutObjectCommand({ ...at('put'), Body: 'a', StorageClass: 'STANDARD_IA' }))
  t.equal(await classOf('put'), 'STANDARD_IA')
  t.equal((await s3.send(new GetObjectCommand(at('put')))).StorageClass, 'STANDARD_IA')
  const attributes = { ...at('put'), ObjectAttributes: ['StorageClass' as const] }
  t.equal((await s3.send(new GetObjectAttributesCommand(attributes))).StorageClass, 'STANDARD_IA')
  const { Contents } = await s3.send(new ListObjectsV2Command({ Bucket: 'box' }))
  t.match(Contents, [{ Key: 'put', StorageClass: 'STANDARD_IA' }])

  await s3.send(new CopyObjectCommand({ ...at('copy'), CopySource: 'box/put', StorageClass: 'ONEZONE_IA' }))
  t.equal(await classOf('copy'), 'ONEZONE_IA')
  await s3.send(new CopyObjectCommand({ ...at('copy'), CopySource: 'box/put' }))
  t.equal(await classOf('copy'), undefined, 'a copy is STANDARD unless it asks for another class')
  await s3.send(new CopyObjectCommand({ ...at('put'), CopySource: 'box/put', StorageClass: 'REDUCED_REDUNDANCY' }))
  t.equal(await classOf('put'), 'REDUCED_REDUNDANCY', 'changed in place')
  await s3.send(new PutObjectCommand({ ...at('put'), Body: 'b' }))
  t.equal(await classOf('put'), undefined)

  const { UploadId } = await s3.send(
    new CreateMultipartUploadCommand({ ...at('parts'), StorageClass: 'INTELLIGENT_TIERING' }),
  )
  const part = { ...at('parts'), UploadId, PartNumber: 1 }
  const { ETag } = await s3.send(new UploadPartCommand({ ...part, Body: 'c' }))
  t.equal((await s3.send(new ListPartsCommand({ ...at('parts'), UploadId }))).StorageClass, 'INTELLIGENT_TIERING')
  const MultipartUpload = { Parts: [{ ETag, PartNumber: 1 }] }
  await s3.send(new CompleteMultipartUploadCommand({ ...at('parts'), UploadId, MultipartUpload }))
  t.equal(await classOf('parts'), 'INTELLIGENT_TIERING')

  // The gateway makes no difference to it.
  if (server.mode === 'legacy') return
  const refusing = clientOf(t, await startDealgate(t, { args: ['--storage-class-labels', 'refuse'] }))
  await refusing.send(new CreateBucketCommand({ Bucket: 'box' }))
  const wanted = { ...at('put'), Body: 'a', StorageClass: 'STANDARD_IA' as const }
  await t.rejects(refusing.send(new PutObjectCommand(wanted)), { name: 'InvalidStorageClass' })
  await refusing.send(new PutObjectCommand({ ...wanted, StorageClass: 'STANDARD' }))
})
