import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseS3Url, readS3Credentials } from '../../../services/store/s3-location.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { connectTo, start } from './client.js'
import { Scene } from './deal-scene.js'
import { S3Store } from './s3-store.js'

t.setTimeout(600_000)

const MiB = 1024 * 1024
const SIZES = [32 * 1024, 32 * 1024 + 1, 16 * MiB, 16 * MiB + 1, 24 * MiB + 12_345]

t.test('bodies in another dealgate', async (t) => {
  const store = await S3Store.start(t, 'dealgate')
  if (store === undefined) return
  const { bodies } = store
  const data = temporaryFolder(t)
  const services = await start(data, { bodies })
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  const objects = new Map(SIZES.map((size) => [`of ${size}`, randomBytes(size)]))
  for (const [key, body] of objects) {
    t.equal((await client.put('bucket', key, body)).status, 200, key)
    t.ok((await client.get('bucket', key)).body.equals(body), 'as it was')
    const asked = store.between.requests.length
    const middle = body.length >> 1
    const part = await client.get('bucket', key, { range: `bytes=${middle}-${middle + 99}` })
    t.match(part, { status: 206, headers: { 'content-length': '100' } })
    t.ok(part.body.equals(body.subarray(middle, middle + 100)))
    // Not what the sweep of the start asks for.
    const read = store.between.requests.slice(asked).find(({ path }) => !/\?|\.json$/.test(path))
    // All of the chunk, which is compared with its checksum.
    const chunk = middle - (middle % (64 * 1024))
    const range = body.length > 64 * 1024 ? `bytes=${chunk}-${chunk + 64 * 1024 - 1}` : undefined
    if (body.length > 32 * 1024) t.match(read, { method: 'GET', ...(range && { headers: { range } }) })
    else t.equal(read, undefined, 'a small body is in the index')
  }
  t.equal((await store.keys()).length, objects.size - 1)
  await services.stop()

  await t.rejects(start(data), /start with the --bodies that names it/)
  const elsewhere = { ...bodies, url: bodies.url.replace('/of/us', '/of/others') }
  await t.rejects(start(data, { bodies: elsewhere }), /The bodies of this data folder are elsewhere/)
  const none = { ...bodies, url: bodies.url.replace('s3://bodies', 's3://no-such-bucket') }
  await t.rejects(start(data, { bodies: none }), /cannot be kept in the bucket no-such-bucket/)

  const again = await start(data, { bodies })
  t.teardown(() => again.stop())
  const reader = await connectTo(again)
  for (const [key, body] of objects) t.ok((await reader.get('bucket', key)).body.equals(body), 'after a restart')
  await reader.call('RemoveObject', { bucketName: 'bucket', objects: [...objects.keys()] })
  await until('the bodies are removed', async () => (await store.keys()).length === 0)
})

t.test('deals read bodies of a store, and bring them back into it', async (t) => {
  const store = await S3Store.start(t, 'minio')
  if (store === undefined) return
  const scene = await Scene.start(t, { bodies: store.bodies })
  const { client } = scene
  const body = randomBytes(18 * MiB)
  const generation = await client.put('bucket', 'key', body)
  const [first] = await store.keys()
  t.ok(first?.endsWith(generation))
  t.match(await client.deal('bucket', 'key'), { status: 'success' })
  t.ok(scene.lastBodies()[0]?.equals(body))
  t.match(await client.evict('bucket', 'key', generation), { http: 200 })
  await until('the body is removed', async () => (await store.keys()).length === 0)
  t.match(await client.retrieve('bucket', 'key'), { status: 'success' })
  const again = await store.keys()
  t.equal(again.length, 1)
  t.not(again[0], first, 'a removal that comes late meets no other body')
  t.ok((await client.gateway.get('bucket', 'key')).body.equals(body))
  t.equal(scene.files().length, 0)
})

t.test('the address of a store, and its credentials', async (t) => {
  t.same(parseS3Url('s3://bucket/a/b/?endpoint=http://127.0.0.1:9000&region=eu-1'), {
    endpoint: 'http://127.0.0.1:9000',
    isAws: false,
    region: 'eu-1',
    bucket: 'bucket',
    prefix: 'a/b',
  })
  t.match(parseS3Url('s3://bucket?region=eu-1'), { endpoint: 'https://s3.eu-1.amazonaws.com', prefix: '' })
  for (const wrong of [
    'http://bucket',
    's3:///prefix',
    's3://id:secret@bucket',
    's3://bucket?endpoint=http://host/path',
    's3://bucket?secret=x',
  ])
    t.throws(() => parseS3Url(wrong), RangeError, wrong)
  const file = join(temporaryFolder(t), 'credentials')
  writeFileSync(file, '[other]\naws_access_key_id=a\naws_secret_access_key=b\n[default]\naws_access_key_id = c\n')
  const variables = { AWS_ACCESS_KEY_ID: 'v', AWS_SECRET_ACCESS_KEY: 'w', AWS_SHARED_CREDENTIALS_FILE: file }
  const place = parseS3Url('s3://bucket')
  t.match(readS3Credentials(undefined, variables, place), { accessKeyId: 'v', secretAccessKey: 'w' })
  t.match(readS3Credentials(file, { ...variables, AWS_PROFILE: 'other' }, place), {
    accessKeyId: 'a',
    secretAccessKey: 'b',
  })
  const missing = 'a profile that is not complete'
  const elsewhere = parseS3Url('s3://bucket?endpoint=http://127.0.0.1:9000')
  t.throws(() => readS3Credentials(file, variables, elsewhere), /^(?!.*AWS \().*There are no credentials/, missing)
  t.throws(() => readS3Credentials(file, variables, place), /names no endpoint.*There are no credentials/, missing)
})
