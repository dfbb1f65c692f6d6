import { randomBytes } from 'node:crypto'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { connectTo, start } from './client.js'
import { S3Store, type StoreKind } from './s3-store.js'

t.setTimeout(600_000)

const MiB = 1024 * 1024
const SIZES = [32 * 1024, 32 * 1024 + 1, 16 * MiB, 16 * MiB + 1, 24 * MiB + 12_345]

for (const kind of ['minio', 'dealgate'] satisfies StoreKind[]) {
  t.test(`bodies in ${kind}`, async (t) => {
    const store = await S3Store.start(t, kind)
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
      const [read] = store.between.requests.slice(asked)
      if (body.length > 32 * 1024)
        t.match(read, { method: 'GET', headers: { range: `bytes=${middle}-${middle + 99}` } })
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
}
