import { randomBytes } from 'node:crypto'
import t from 'tap'
import { NetworkError } from '../../src/services/network/network.js'
import { Scene } from './deal-scene.js'
import { Gate } from './scripted-network.js'

const large = randomBytes(100_000)

t.test('a token has its deal also when what it was made of is gone', async (t) => {
  const scene = await Scene.start(t)
  const { client } = scene
  const { gateway } = client
  await client.put('bucket', 'key', 'x')
  const { data: object } = await client.deal('bucket', 'key', {}, 'object')
  const { data: whole } = await client.deals('bucket', {}, 'bucket')
  const same = async (what: string) => {
    t.match(await client.deal('bucket', 'key', {}, 'object'), { status: 'success', data: object }, what)
    t.match(await client.deals('bucket', {}, 'bucket'), { status: 'success', data: whole }, what)
  }
  await scene.remove('key')
  await same('the object')
  await gateway.call('DeleteBucket', { bucketName: 'bucket' })
  await same('the bucket')
  t.match(await client.deal('bucket', 'key', {}, 'other'), { http: 404 })
  t.match(await client.deals('bucket'), { http: 404 })
  await gateway.call('MakeBucket', { bucketName: 'bucket' })
  await same('and another one has its name')
  t.match(await client.deal('bucket', 'key', { Price: '7' }, 'object'), { http: 409 })
  t.match(await client.deals('bucket', {}, 'object'), { http: 409 })
  t.equal(scene.network.deals.size, 2)
})

t.test('whoever asks for one deal is not in the way of those who take any', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const { deliver } = network
  const generation = await client.put('bucket', 'key', large)
  for (let count = 0; count < 2; count++) await client.deal('bucket', 'key')
  t.match(await client.evict('bucket', 'key', generation), { status: 'success' })
  const gate = new Gate()
  network.deliver = async function* (bytes, cid) {
    if (cid === 'deal-1') yield* deliver(bytes, cid)
    await gate.pass()
    throw new NetworkError('NotRetrievable', 'Lost.')
  }
  const narrow = client.ask('retrieve/bucket/key', undefined, { 'x-cloud-deal-cid': 'deal-0' })
  await gate.reached()
  const any = [client.retrieve('bucket', 'key'), client.retrieve('bucket', 'key')]
  await client.used()
  network.deliver = deliver
  gate.open()
  t.match(await narrow, { status: 'fail', message: 'Lost.' })
  for (const answer of await Promise.all(any)) t.match(answer, { status: 'success' })
  t.equal(network.retrievals.filter((cid) => cid === 'deal-1').length, 2, 'once for the eviction and once for all')
})

t.test('nothing is given up for a deal that has ended, or may be lost', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const generation = await client.put('bucket', 'key', large)
  await client.deal('bucket', 'key')
  let asked = 0
  network.beforeStatus = async () => {
    // It was active when the network looked; the answer took its time.
    if (++asked === 2) network.now = 2000
    return {}
  }
  t.match(await client.evict('bucket', 'key', generation), {
    http: 409,
    message: 'The deal deal-0 has ended. Nothing was removed.',
  })
  t.equal(asked, 2)
  network.now = 1000
  network.beforeStatus = async () => ({ unconfirmed: true, message: 'Not known for certain.' })
  t.match(await client.evict('bucket', 'key', generation), {
    http: 409,
    message: /Nothing was removed: Not known for certain/,
  })
  t.ok((await client.gateway.get('bucket', 'key')).body.equals(large))
  network.beforeStatus = async () => ({})
  t.match(await client.evict('bucket', 'key', generation), { http: 200 })
})
