import t, { type Test } from 'tap'
import type { Client } from './client.js'
import { startGateway, twoAccounts } from './client.js'

/** Quotas of buckets, as the RPC of the embedded gateway has them. */

const bucketName = 'bucket'
const refused = { status: 403, text: /quota of the bucket is/ }

async function bounded(t: Test, client: Client, quota: object) {
  t.match(await client.call('SetBucketQuota', { bucketName, ...quota }), { quota })
  return {
    put: (key: string, bytes: number) => client.put(bucketName, key, Buffer.alloc(bytes)),
    usage: async () => (await client.call('BucketQuota', { bucketName })).usage,
  }
}

t.test('all versions count', async (t) => {
  const client = await startGateway(t)
  await client.call('MakeBucket', { bucketName })
  await client.call('SetBucketVersioning', { bucketName, status: 'Enabled' })
  const { put, usage } = await bounded(t, client, { bytes: 250 })
  t.same([(await put('key', 100)).status, (await put('key', 100)).status], [200, 200])
  t.match(await put('key', 100), refused, 'a write replaces nothing')
  await client.call('RemoveObject', { bucketName, objects: ['key'] })
  t.same(await usage(), { bytes: 200, objects: 3 }, 'with the delete marker')
  await bounded(t, client, { objects: 3 })
  await client.call('RemoveObject', { bucketName, objects: ['key'] })
  t.same(await usage(), { bytes: 200, objects: 4 }, 'which is never refused')

  await bounded(t, client, { bytes: 300, objects: null })
  const order = (id: string) => ({ 'x-cloud-fence': String(Date.now() * 1000), 'x-cloud-write-id': id })
  const last = order('last')
  const again = () => client.put(bucketName, 'key', Buffer.alloc(100), last)
  t.same([(await again()).status, (await again()).status], [200, 200], 'one that is repeated needs no more')
  t.match(await client.put(bucketName, 'key', Buffer.alloc(100), order('more')), refused)
  t.match(await usage(), { bytes: 300 })
})

t.test('the owner and the first account decide, and the quota of the account counts as well', async (t) => {
  const { owner: first, other, anyone, registry, keys } = await twoAccounts(t)
  await other.call('MakeBucket', { bucketName })
  const { put } = await bounded(t, other, { bytes: 1000 })
  t.match(await first.call('SetBucketQuota', { bucketName, bytes: 50 }), { quota: { bytes: 50, objects: null } })
  t.match(await put('key', 51), refused)
  t.match(await other.call('SetBucketQuota', { bucketName, bytes: 500 }), { quota: { bytes: 500 } })
  await registry.quota(keys.accessKey, { bytes: 100 })
  t.match(await put('key', 101), { status: 403, text: /quota of the account is/ })
  t.equal((await put('key', 100)).status, 200)

  await first.call('MakeBucket', { bucketName: 'own' })
  for (const method of ['BucketQuota', 'SetBucketQuota']) {
    t.match(await other.failure(method, { bucketName: 'own' }), { message: /enough permissions/ })
    t.match(await anyone.failure(method, { bucketName }), { message: /./ })
    t.match(await first.failure(method, { bucketName: 'absent' }), { message: /does not exist/ })
  }
})
