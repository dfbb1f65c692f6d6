import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t from 'tap'
import { start } from '../../examples/express-mount/main.js'

t.test('express-mount: S3 under /storage, the app beside it, signatures valid', async (t) => {
  const mounted = await start(t.testdir(), 0)
  t.teardown(() => mounted.stop())
  const s3 = new S3Client({
    endpoint: `${mounted.url}/storage`,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'example-key', secretAccessKey: 'example-secret' },
  })
  t.teardown(() => s3.destroy())

  t.equal(await (await fetch(`${mounted.url}/hello`)).text(), 'not S3\n')

  const Bucket = 'mounted'
  const Key = 'a folder/ü+%25 &?#.txt'
  await s3.send(new CreateBucketCommand({ Bucket }))
  await s3.send(new PutObjectCommand({ Bucket, Key, Body: 'through the mount', ContentType: 'text/plain' }))
  const got = await s3.send(new GetObjectCommand({ Bucket, Key }))
  t.equal(await got.Body?.transformToString(), 'through the mount')
  t.equal(got.ContentType, 'text/plain')
  t.same(
    (await s3.send(new ListObjectsV2Command({ Bucket }))).Contents?.map((object) => object.Key),
    [Key],
  )

  const link = await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key }), { expiresIn: 60 })
  t.match(link, /\/storage\/mounted\//)
  t.equal(await (await fetch(link)).text(), 'through the mount')

  const refused = await fetch(`${mounted.url}/storage/mounted/${encodeURIComponent(Key)}`)
  t.equal(refused.status, 403)
  t.match(await refused.text(), /<Code>AccessDenied<\/Code>/)
})
