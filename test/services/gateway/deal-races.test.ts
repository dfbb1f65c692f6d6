import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import t from 'tap'
import { openAccountRegistry } from '../../../src/services/gateway/accounts/account-registry.js'
import { NetworkError } from '../../../src/services/network/network.js'
import { until } from '../../support/waiting.js'
import { databaseOf } from '../engine.js'
import { Gate, ScriptedNetwork } from '../scripted-network.js'
import type { DealClient } from './deal-client.js'
import { Scene } from './deal-scene.js'

const large = randomBytes(100_000)

t.test('a deal is made of what was there, whatever is written and removed meanwhile', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  for (const body of [Buffer.from('small'), large]) {
    for (const change of [
      () => client.put('bucket', 'key', Buffer.alloc(50_000)),
      () => client.put('bucket', 'key', 'new'),
      () => scene.remove('key'),
    ]) {
      await client.put('bucket', 'key', body)
      const gate = new Gate()
      network.beforeFile = gate.pass
      const deal = client.deal('bucket', 'key')
      await gate.reached()
      await change()
      t.equal(scene.count('retained'), 1)
      gate.open()
      t.match(await deal, { status: 'success' })
      t.ok(scene.lastBodies()[0]?.equals(body))
      t.equal(scene.count('retained'), 0, 'let go afterwards')
    }
  }
  await scene.remove('key')
  await until('no file is left', () => scene.files().length === 0)
  t.equal(scene.count('bodies'), 0)
})

t.test('a bucket as it was at one moment', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const bodies = new Map(
    [...'abcdef'].map((key, index) => [key, index % 2 === 0 ? randomBytes(40_000) : Buffer.from(key)]),
  )
  for (const [key, body] of bodies) await client.put('bucket', key, body)
  const [first, second] = [new Gate(), new Gate()]
  network.beforeFile = first.pass
  const one = client.deals('bucket')
  await first.reached()
  network.beforeFile = second.pass
  const other = client.deals('bucket')
  await second.reached()
  const evicted = await client.evict('bucket', 'a', (await generations(client)).a ?? '')
  t.match(evicted, { http: 409, message: /A pending deal reads the object/ })
  for (const key of 'abc') await client.put('bucket', key, 'new')
  await client.put('bucket', 'another', large)
  await scene.remove('d', 'e', 'f', 'another', 'a', 'b', 'c')
  await client.gateway.call('DeleteBucket', { bucketName: 'bucket' })
  t.equal(scene.count('retained'), 6, 'what neither holds is not kept')
  first.open()
  t.match(await one, { status: 'success' })
  t.same(scene.lastBodies(), [...bodies.values()])
  t.equal(scene.count('retained'), 6, 'the other one needs them')
  second.open()
  t.match(await other, { status: 'success' })
  t.same(scene.lastBodies(), [...bodies.values()])
  t.equal(scene.count('retained'), 0)
  await until('no file is left', () => scene.files().length === 0)
  t.equal(scene.count('bodies'), 0)
})

async function generations(client: DealClient): Promise<Record<string, string>> {
  const { objects } = await client.gateway.call('ListObjects', { bucketName: 'bucket', delimiter: '' })
  return Object.fromEntries(objects.map(({ name, generation }: Record<string, string>) => [name, generation]))
}

t.test('a deal that fails leaves nothing', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  for (let index = 0; index < 600; index += 50)
    await Promise.all(Array.from({ length: 50 }, (_, more) => client.put('bucket', `${index + more}`, 'x')))
  network.beforeDone = async () => {
    throw new NetworkError('TermsRefused', 'Too cheap.')
  }
  t.match(await client.deals('bucket', {}, 'token'), { http: 200, status: 'fail', message: 'Too cheap.' })
  network.beforeDone = async () => {
    throw new Error('A secret detail.')
  }
  t.match(await client.deals('bucket', {}, 'token'), { http: 500, status: 'fail', message: /internal error/ })
  t.equal(scene.count('deals'), 0)
  t.equal(scene.count('deal_files'), 0)
  const gate = new Gate()
  network.beforeDone = gate.pass
  const stopped = client.deals('bucket').catch(() => undefined)
  await gate.reached()
  await scene.running.stop()
  await stopped
  const again = await Scene.start(t, network, scene.folder)
  t.equal(again.count('deals'), 0, 'nor does a stop')
  t.equal(again.count('deal_files'), 0)
})

t.test('what a crash leaves is settled from the network', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  await client.put('bucket', 'key', large)
  await client.put('bucket', 'other', 'small')
  const [before, after] = [new Gate(), new Gate()]
  network.beforeDone = before.pass
  const lost = client.deals('bucket', {}, 'lost')
  await before.reached()
  network.beforeDone = async () => {}
  network.afterDone = after.pass
  const made = client.deals('bucket', {}, 'made')
  await after.reached()
  await client.put('bucket', 'key', 'overwritten, and kept for the deals')
  await scene.remove('other')
  t.equal(scene.count('retained'), 2)
  await client.gateway.call('MakeBucket', { bucketName: 'later' })

  const crashed = await scene.afterCrash(t)
  t.equal(crashed.count('retained'), 0, 'nothing is held any more')
  await until('no file is left', () => crashed.files().length === 0)
  t.equal(crashed.count('bodies'), 1)
  t.equal((await crashed.client.ask('dealprogress/lost')).http, 404)
  t.same((await crashed.client.ask('dealprogress/made')).data, {
    phase: 'Done',
    bytesDone: 100_005,
    bytesTotal: 100_005,
    filesDone: 2,
    filesTotal: 2,
  })
  const history = await crashed.client.history('bucket')
  t.match(history.data.deals, [{ data: { dealCid: 'deal-0' } }])
  t.equal(history.data.deals.length, 1)
  network.afterDone = async () => {}
  t.match(await crashed.client.deals('bucket', {}, 'made'), { status: 'success', data: { dealCid: 'deal-0' } })
  t.match(await crashed.client.deals('bucket', {}, 'lost'), { status: 'success', data: { dealCid: 'deal-1' } })

  network.failure = new NetworkError('Unavailable', 'The network is away.')
  const unsure = await scene.afterCrash(t)
  t.match((await unsure.client.ask('dealprogress/made')).data, { phase: 'Settling', filesTotal: 2 })
  t.match(await unsure.client.deals('bucket', {}, 'made'), {
    http: 503,
    status: 'fail',
    message: 'The network is away.',
  })
  t.match(await unsure.client.deals('bucket', { Price: '7' }, 'made'), { http: 409 })
  t.match(await unsure.client.ask('providers'), { http: 503, data: null })
  t.match(await unsure.client.ask('dealstatus/deal-0'), { http: 503 })
  network.failure = undefined
  const elsewhere = await scene.afterCrash(t, Object.assign(new ScriptedNetwork(), { kind: 'kubo' as const }))
  t.match(await elsewhere.client.deals('bucket', {}, 'made'), {
    http: 503,
    message: /Only the storage network of kind embedded knows/,
  })
  t.match((await elsewhere.client.ask('dealprogress/lost')).data, { phase: 'Settling' }, 'nor is it given up')
  t.match(await unsure.client.deals('bucket', {}, 'made'), { status: 'success', data: { dealCid: 'deal-0' } })
  t.equal((await unsure.client.history('bucket')).data.deals.length, 1)

  before.open()
  after.open()
  t.match(await lost, { status: 'success' })
  t.match(await made, { status: 'success', data: { dealCid: 'deal-0' } })
})

t.test('eviction compares all of it, with what there is', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  for (const body of [Buffer.from('small'), large]) {
    const generation = await client.put('bucket', 'key', body)
    await client.deal('bucket', 'key')
    const deliver = network.deliver
    for (const wrong of [
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('x')]),
      (bytes: Buffer) => bytes.subarray(0, -1),
      (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -1), Buffer.from([(bytes.at(-1) ?? 0) ^ 1])]),
      () => Buffer.alloc(0),
    ]) {
      network.deliver = (bytes, cid) => deliver(wrong(bytes), cid)
      t.match(await client.evict('bucket', 'key', generation), {
        http: 409,
        status: 'fail',
        message: /delivered other bytes/,
      })
    }
    const asked = network.retrievals.length
    network.deliver = deliver
    network.state = 'StorageDealSealing'
    t.match(await client.evict('bucket', 'key', generation), { http: 409, message: /StorageDealSealing/ })
    network.state = 'StorageDealActive'
    t.equal(network.retrievals.length, asked)

    for (const change of [() => client.put('bucket', 'key', body), () => scene.remove('key')]) {
      const current = await client.put('bucket', 'key', body)
      await client.deal('bucket', 'key')
      const gate = new Gate()
      network.deliver = async function* (bytes) {
        yield bytes.subarray(0, 1)
        await gate.pass()
        yield bytes.subarray(1)
      }
      const evicting = client.evict('bucket', 'key', current)
      await gate.reached()
      await change()
      gate.open()
      t.match(await evicting, { status: 'fail', message: /overwritten|key does not exist/ })
      network.deliver = deliver
    }

    const last = await client.put('bucket', 'key', body)
    await client.deal('bucket', 'key')
    const [one, two] = await Promise.all([client.evict('bucket', 'key', last), client.evict('bucket', 'key', last)])
    t.same([one.status, two.status].sort(), ['fail', 'success'], 'once')
    t.equal(await client.used(), 0)
    await until('no file is left', () => scene.files().length === 0)
  }
})

t.test('bringing back: once, to the end, and whole', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const deliver = network.deliver
  for (const body of [Buffer.from('small'), large]) {
    const generation = await scene.cold('key', body)
    const gate = new Gate()
    network.deliver = async function* (bytes, cid) {
      await gate.pass()
      yield* deliver(bytes, cid)
    }
    network.retrievals.length = 0
    const asked = Array.from({ length: 4 }, () => client.retrieve('bucket', 'key'))
    await gate.reached()
    t.equal((await client.gateway.get('bucket', 'key')).status, 403, 'not before all of it is here')
    gate.open()
    for (const answer of await Promise.all(asked)) t.match(answer, { status: 'success' })
    t.equal(network.retrievals.length, 1)
    t.ok((await client.gateway.get('bucket', 'key')).body.equals(body))

    network.deliver = deliver
    await client.evict('bucket', 'key', generation)
    const second = new Gate()
    network.deliver = async function* (bytes, cid) {
      await second.pass()
      yield* deliver(bytes, cid)
    }
    const abort = new AbortController()
    const url = `${client.gateway.url}/gateway/retrieve/bucket/key`
    const left = fetch(url, { headers: client.gateway.headers(), signal: abort.signal }).catch((error) => error.name)
    await second.reached()
    abort.abort()
    t.equal(await left, 'AbortError')
    second.open()
    await until('the object is local again', async () => (await client.gateway.get('bucket', 'key')).status === 200)

    for (const change of [() => client.put('bucket', 'key', 'new'), () => scene.remove('key')]) {
      network.deliver = deliver
      await scene.cold('key', body)
      const third = new Gate()
      network.deliver = async function* (bytes, cid) {
        yield* deliver(bytes, cid)
        await third.pass()
      }
      const retrieving = client.retrieve('bucket', 'key')
      await third.reached()
      await change()
      third.open()
      t.match(await retrieving, { http: 200 })
      const now = await client.gateway.get('bucket', 'key')
      t.ok(now.status === 404 || now.text === 'new', 'what came in between stays')
      await until('no file is left', () => scene.files().length === 0)
      t.equal(await client.used(), now.status === 404 ? 0 : 3)
    }
    await scene.remove('key')
    network.deliver = deliver
  }
})

t.test('providers are tried in turn, and none gets away with other bytes', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const deliver = network.deliver
  for (const body of [Buffer.from('small'), large]) {
    const generation = await client.put('bucket', 'key', body)
    for (let count = 0; count < 3; count++) await client.deal('bucket', 'key')
    await client.evict('bucket', 'key', generation)
    const latest = [...network.deals.values()].slice(-3).map(({ made }) => made.dealCid)
    network.deliver = async function* (bytes, cid) {
      if (cid === latest[2]) {
        yield bytes.subarray(0, 1)
        throw new NetworkError('NotRetrievable', 'Cut off.')
      }
      yield* deliver(cid === latest[1] ? Buffer.from(bytes).fill(0) : bytes, cid)
    }
    network.retrievals.length = 0
    t.match(await client.retrieve('bucket', 'key'), { status: 'success' })
    t.same(network.retrievals, [...latest].reverse())
    t.ok((await client.gateway.get('bucket', 'key')).body.equals(body))

    network.deliver = deliver
    await client.evict('bucket', 'key', generation)
    network.deliver = async function* (bytes, cid) {
      if (cid !== latest[0]) yield bytes.subarray(0, 2)
      throw new NetworkError('NotRetrievable', `No ${cid}.`)
    }
    const failed = await client.retrieve('bucket', 'key')
    t.match(failed, { http: 200, status: 'fail', message: `No ${latest[2]}. No ${latest[1]}. No ${latest[0]}.` })
    network.deliver = () => {
      throw new Error('A secret detail.')
    }
    t.match(await client.retrieve('bucket', 'key'), { http: 500, status: 'fail', message: /internal error/ })
    t.equal((await client.gateway.get('bucket', 'key')).status, 403)

    network.deliver = async function* (bytes, cid) {
      const cut = [...latest].reverse().indexOf(cid) + 1
      yield bytes.subarray(0, cut)
      if (cid !== latest[0]) throw new NetworkError('NotRetrievable', 'Cut off.')
      yield bytes.subarray(cut)
    }
    t.match(await client.deal('bucket', 'key'), { status: 'success' }, 'each goes on where the last one ended')
    t.ok(scene.lastBodies()[0]?.equals(body))
    network.deliver = (bytes, cid) => deliver(Buffer.from(bytes).fill(0), cid)
    t.match(await client.deal('bucket', 'key'), { http: 200, status: 'fail', message: /delivered other bytes/ })
    network.deliver = deliver
    await scene.remove('key')
  }
})

t.test('requests of one and the same kind at once', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const bodies = Array.from({ length: 24 }, () => randomBytes(40_000))
  const keys = bodies.map((_, index) => `key-${index}`)
  const cold = await Promise.all(keys.map((key, index) => scene.cold(key, bodies[index] ?? '')))
  t.equal(cold.length, 24)
  await until('no file is left', () => scene.files().length === 0)
  let running = 0
  let most = 0
  const { deliver } = network
  network.deliver = async function* (bytes, cid) {
    most = Math.max(most, ++running)
    yield* deliver(bytes, cid)
    running--
  }
  await Promise.all(keys.map((key) => client.retrieve('bucket', key)))
  t.ok(most <= 8, `${most} at once`)
  for (const [index, key] of keys.entries())
    t.ok((await client.gateway.get('bucket', key)).body.equals(bodies[index] ?? Buffer.alloc(0)))
})

t.test('bytes that a pending deal keeps count for the quota', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const registry = await openAccountRegistry(dirname(scene.folder), await databaseOf(scene.folder))
  t.teardown(() => registry.close())
  const owner = (await registry.all())[0]?.accessKey ?? ''
  const stored = async () => (await registry.quota(owner)).usage.bytes
  await registry.quota(owner, { bytes: 250_000 })
  for (const body of [large, Buffer.from('small')]) {
    await client.put('bucket', 'key', body)
    const gate = new Gate()
    network.beforeFile = gate.pass
    const deal = client.deal('bucket', 'key')
    await gate.reached()
    t.equal(await stored(), body.length)
    await client.put('bucket', 'key', large)
    t.equal(await stored(), body.length + large.length, 'the replaced body is on the disk')
    if (body === large) {
      await t.rejects(client.put('bucket', 'more', large), /quota of the account/)
      await client.put('bucket', 'key', large)
      await scene.remove('key')
      t.equal(await stored(), large.length, 'of a removed object, too')
      await client.gateway.call('DeleteBucket', { bucketName: 'bucket' })
      t.equal(await stored(), large.length, 'of a removed bucket, too')
      await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
    }
    gate.open()
    t.match(await deal, { status: 'success' })
    t.equal(await stored(), body === large ? 0 : large.length)
    await scene.remove('key')
  }
})
