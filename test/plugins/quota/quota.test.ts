import { S3 } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t from 'tap'
import { run } from '../../support/programs/run.js'
import { startInProcess } from '../../support/server/in-process.js'
import { send } from '../../support/sign/send.js'

/** Quotas of buckets, over S3. */

const Bucket = 'bounded'
const owner = { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' }
const writer = {
  ...{ accessKeyId: 'writer-key', secretAccessKey: 'writer-secret' },
  rights: [{ bucket: Bucket, access: 'readwrite' as const }],
}
const identities = [owner, writer]

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

function asking(endpoint: string, { accessKeyId, secretAccessKey } = owner) {
  const who = { endpoint, accessKey: accessKeyId, secretKey: secretAccessKey, region: 'us-east-1' }
  return async (method: Method, document?: object, bucket = Bucket) => {
    const body = document && Buffer.from(JSON.stringify(document))
    const target = `/${bucket}?format=json&x-quota=`
    const { status, body: bytes } = await send(who, { method, target, ...(body && { body }) })
    return { status, ...JSON.parse(String(bytes)) }
  }
}

t.test('every way to add bytes is refused beyond the quota, and nothing else', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities })
  await s3.createBucket({ Bucket })
  const ask = asking(endpoint)
  t.match(await ask('GET'), { status: 200, Bucket, Quota: {}, Stored: { Bytes: 0, Objects: 0 } })
  t.match(await ask('POST', { Bytes: 1000, Objects: 3 }), { status: 200, Quota: { Bytes: 1000, Objects: 3 } })
  await s3.putObject({ Bucket, Key: 'a', Body: 'x'.repeat(900) })
  const refused = { name: 'QuotaExceeded', $metadata: { httpStatusCode: 403 }, message: /quota of the bucket/ }
  const Body = 'x'.repeat(101)
  await t.rejects(s3.putObject({ Bucket, Key: 'b', Body }), refused, 'PutObject')
  await s3.createBucket({ Bucket: 'source' })
  await s3.putObject({ Bucket: 'source', Key: 'b', Body })
  await t.rejects(s3.copyObject({ Bucket, Key: 'b', CopySource: 'source/b' }), refused, 'CopyObject')
  const { UploadId } = await s3.createMultipartUpload({ Bucket, Key: 'b' })
  const { ETag } = await s3.uploadPart({ Bucket, Key: 'b', UploadId, PartNumber: 1, Body })
  const complete = () =>
    s3.completeMultipartUpload({ Bucket, Key: 'b', UploadId, MultipartUpload: { Parts: [{ ETag, PartNumber: 1 }] } })
  await t.rejects(complete(), refused, 'CompleteMultipartUpload')
  const { url, fields } = await createPresignedPost(s3, { Bucket, Key: 'b' })
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', new Blob([Body]))
  const posted = await fetch(url, { method: 'POST', body: form })
  t.match([posted.status, await posted.text()], [403, /<Code>QuotaExceeded</], 'PostObject')
  t.match(await ask('GET'), { Stored: { Bytes: 900, Objects: 1 } })

  await s3.putObject({ Bucket, Key: 'a', Body: 'x'.repeat(899) })
  await complete()
  t.match(await ask('GET'), { Stored: { Bytes: 1000, Objects: 2 } }, 'the upload stayed')
  t.match(await ask('POST', { Bytes: 10 }), { Quota: { Bytes: 10, Objects: 3 }, Stored: { Bytes: 1000 } })
  t.equal((await (await s3.getObject({ Bucket, Key: 'a' })).Body?.transformToString())?.length, 899)
  await s3.deleteObject({ Bucket, Key: 'a' })
  t.match(await ask('POST', { Bytes: null }), { Quota: { Objects: 3 } })

  const writes = Array.from({ length: 8 }, (_, n) => s3.putObject({ Bucket, Key: `race-${n}`, Body }))
  const outcomes = await Promise.allSettled(writes)
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 2, 'writers at the same time')
  t.match(await ask('GET'), { Stored: { Bytes: 303, Objects: 3 } })
  t.strictSame((await ask('POST', { Objects: null })).Quota, {}, 'no bound is left')
  await s3.putObject({ Bucket, Key: 'fourth', Body })

  t.match(await ask('POST', { Bytes: -1 }), { status: 400, Code: 'InvalidArgument' })
  t.match(await ask('POST', { Megabytes: 1 }), { status: 400, Code: 'InvalidArgument' })
  t.match(await ask('GET', undefined, 'absent'), { status: 404, Code: 'NoSuchBucket' })
})

t.test('PUT and DELETE, which other servers would apply to the bucket itself, change nothing', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities })
  const ask = asking(endpoint)
  t.match(await ask('PUT', { Bytes: 1 }), { status: 501, Code: 'NotImplemented' })
  await t.rejects(s3.headBucket({ Bucket }), { name: 'NotFound' })
  await s3.createBucket({ Bucket })
  t.match(await ask('DELETE'), { status: 501, Code: 'NotImplemented' })
  await s3.headBucket({ Bucket })
})

t.test('a key pair needs the action', async (t) => {
  const keeper = { ...writer, accessKeyId: 'keeper-key', actions: ['quota:SetBucketQuota'] }
  const all = [owner, writer, keeper]
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities: all })
  await s3.createBucket({ Bucket })
  t.match(await asking(endpoint, writer)('POST', { Bytes: 1 }), { status: 403, Code: 'AccessDenied' })
  t.match(await asking(endpoint, writer)('GET'), { status: 200, Quota: {} })
  t.match(await asking(endpoint, keeper)('POST', { Bytes: 1 }), { status: 200, Quota: { Bytes: 1 } })
  const client = new S3({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: writer, maxAttempts: 1 })
  t.teardown(() => client.destroy())
  await t.rejects(client.putObject({ Bucket, Key: 'a', Body: 'xy' }), { name: 'QuotaExceeded' })
})

t.test('a gateway without quotas of buckets is refused by name', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'legacy', { identities })
  await s3.createBucket({ Bucket })
  for (const [method, document] of [['GET'], ['POST', { Bytes: 1 }]] as const)
    t.match(await asking(endpoint)(method, document), { status: 501, Code: 'NotImplemented', Message: /quota/ })
})

t.test('curl sets a quota', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities })
  await s3.createBucket({ Bucket })
  const signed = ['--aws-sigv4', 'aws:amz:us-east-1:s3', '-u', `${owner.accessKeyId}:${owner.secretAccessKey}`]
  const url = `${endpoint}/${Bucket}?x-quota=`
  const set = await run('curl', ['-s', ...signed, '-d', '{"Bytes":5}', url])
  t.match(String(set), /<BucketQuota xmlns="urn:dealgate:quota:1"><Bucket>bounded<.*<Quota><Bytes>5</)
  const put = await run('curl', ['-s', ...signed, '--data-binary', '123456', '-X', 'PUT', `${endpoint}/${Bucket}/key`])
  t.match(String(put), /<Code>QuotaExceeded</)
})
