import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import t from 'tap'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import { NetworkError } from '../../../services/network/network.js'
import { DatabaseUnavailableError } from '../../../services/store/database.js'
import { until } from '../../support/waiting.js'
import { databaseOf } from '../engine.js'
import { Gate, inHalves, ScriptedNetwork } from '../scripted-network.js'
import { Scene } from './deal-scene.js'

const large = randomBytes(100_000)

t.test('a bucket as it was at one moment', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const bodies = new Map(
    [...'abcdef'].map((key, index) => [key, index % 2 === 0 ? randomBytes(40_000) : Buffer.from(key)]),
  )
  const generations = new Map<string, string>()
  for (const [key, body] of bodies) generations.set(key, await client.put('bucket', key, body))
  const [first, second] = [new Gate(), new Gate()]
  network.beforeFile = first.pass
  const one = client.deals('bucket')
  await first.reached()
  network.beforeFile = second.pass
  const other = client.deals('bucket')
  await second.reached()
  const evicted = await client.evict('bucket', 'a', generations.get('a') ?? '')
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
  const again = await Scene.start(t, { of: scene })
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
  const evict = (generation: string) => client.evict('bucket', 'key', generation)
  const dealt = async (body: Buffer) => {
    const generation = await client.put('bucket', 'key', body)
    await client.deal('bucket', 'key')
    return generation
  }
  for (const body of [Buffer.from('small'), large]) {
    const generation = await dealt(body)
    for (const wrong of [
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('x')]),
      (bytes: Buffer) => bytes.subarray(0, -1),
      (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -1), Buffer.from([(bytes.at(-1) ?? 0) ^ 1])]),
    ]) {
      network.deliver = (bytes) => inHalves(wrong(bytes))
      t.match(await evict(generation), { http: 409, status: 'fail', message: /delivered other bytes/ })
    }
    const asked = network.retrievals.length
    network.state = 'StorageDealSealing'
    t.match(await evict(generation), { http: 409, message: /StorageDealSealing/ })
    network.state = 'StorageDealActive'
    t.equal(network.retrievals.length, asked)

    for (const change of [() => client.put('bucket', 'key', body), () => scene.remove('key')]) {
      const current = await dealt(body)
      const gate = scene.heldAfter(1)
      const evicting = evict(current)
      await gate.reached()
      await change()
      gate.open()
      t.match(await evicting, { status: 'fail', message: /overwritten|key does not exist/ })
    }

    const last = await dealt(body)
    const [one, two] = await Promise.all([evict(last), evict(last)])
    t.same([one.status, two.status].sort(), ['fail', 'success'], 'once')
    t.equal(await client.used(), 0)
    await until('no file is left', () => scene.files().length === 0)
  }
})

t.test('bringing back: once, to the end, and whole', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const get = () => client.gateway.get('bucket', 'key')
  for (const body of [Buffer.from('small'), large]) {
    const generation = await scene.cold('key', body)
    const gate = scene.heldAfter(0)
    network.retrievals.length = 0
    const asked = Array.from({ length: 4 }, () => client.retrieve('bucket', 'key'))
    await gate.reached()
    t.equal((await get()).status, 403, 'not before all of it is here')
    gate.open()
    for (const answer of await Promise.all(asked)) t.match(answer, { status: 'success' })
    t.equal(network.retrievals.length, 1)
    t.ok((await get()).body.equals(body))

    t.match(await client.evict('bucket', 'key', generation), { status: 'success' })
    const second = scene.heldAfter(0)
    const abort = new AbortController()
    const url = `${client.gateway.url}/gateway/retrieve/bucket/key`
    const left = fetch(url, { headers: client.gateway.headers(), signal: abort.signal })
    await second.reached()
    abort.abort()
    await t.rejects(left, { name: 'AbortError' })
    second.open()
    await until('the object is local again', async () => (await get()).status === 200)

    for (const [change, used] of [
      [() => client.put('bucket', 'key', 'new'), 3],
      [() => scene.remove('key'), 0],
    ] as const) {
      await scene.cold('key', body)
      const third = scene.heldAfter(body.length)
      const retrieving = client.retrieve('bucket', 'key')
      await third.reached()
      await change()
      third.open()
      t.match(await retrieving, { http: 200 })
      t.match(await get(), used > 0 ? { text: 'new' } : { status: 404 }, 'what came in between stays')
      await until('no file is left', () => scene.files().length === 0)
      t.equal(await client.used(), used)
    }
  }
})

t.test('providers are tried in turn, and none gets away with other bytes', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  for (const body of [Buffer.from('small'), large]) {
    const generation = await client.put('bucket', 'key', body)
    for (let count = 0; count < 3; count++) await client.deal('bucket', 'key')
    await client.evict('bucket', 'key', generation)
    const [last, middle, first] = [...network.deals.values()].slice(-3).map(({ made }) => made.dealCid)
    const zeros = (bytes: Buffer) => inHalves(Buffer.alloc(bytes.length))
    network.deliver = async function* (bytes, cid) {
      if (cid !== first) return yield* cid === middle ? zeros(bytes) : inHalves(bytes)
      yield bytes.subarray(0, 1)
      throw new DatabaseUnavailableError('That of the network is away.')
    }
    network.retrievals.length = 0
    t.match(await client.retrieve('bucket', 'key'), { status: 'success' })
    t.same(network.retrievals, [first, middle, last])
    t.ok((await client.gateway.get('bucket', 'key')).body.equals(body))

    network.deliver = inHalves
    await client.evict('bucket', 'key', generation)
    network.deliver = async function* (bytes, cid) {
      if (cid !== last) yield bytes.subarray(0, 2)
      throw new NetworkError('NotRetrievable', `No ${cid}.`)
    }
    const failed = await client.retrieve('bucket', 'key')
    t.match(failed, { http: 200, status: 'fail', message: `No ${first}. No ${middle}. No ${last}.` })
    network.deliver = (_, cid) => {
      if (cid === first) throw new DatabaseUnavailableError('That of the network is away.')
      throw new NetworkError('NotRetrievable', `No ${cid}.`)
    }
    t.match(await client.retrieve('bucket', 'key'), { http: 503, status: 'fail' }, 'another attempt may succeed')
    network.deliver = () => {
      throw new Error('A secret detail.')
    }
    t.match(await client.retrieve('bucket', 'key'), { http: 500, status: 'fail', message: /internal error/ })
    t.equal((await client.gateway.get('bucket', 'key')).status, 403)

    network.deliver = async function* (bytes, cid) {
      const cut = [first, middle, last].indexOf(cid) + 1
      yield bytes.subarray(0, cut)
      if (cid !== last) throw new NetworkError('NotRetrievable', 'Cut off.')
      yield bytes.subarray(cut)
    }
    t.match(await client.deal('bucket', 'key'), { status: 'success' }, 'each goes on where the last one ended')
    t.ok(scene.lastBodies()[0]?.equals(body))
    network.deliver = zeros
    t.match(await client.deal('bucket', 'key'), { http: 200, status: 'fail', message: /delivered other bytes/ })
    network.deliver = inHalves
    await scene.remove('key')
  }
})

t.test('eight are brought back at once', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const keys = Array.from({ length: 24 }, (_, n) => `key-${n}`)
  const body = randomBytes(40_000)
  await Promise.all(keys.map((key) => scene.cold(key, body)))
  await until('no file is left', () => scene.files().length === 0)
  let running = 0
  let most = 0
  network.deliver = async function* (bytes) {
    most = Math.max(most, ++running)
    yield* inHalves(bytes)
    running--
  }
  await Promise.all(keys.map((key) => client.retrieve('bucket', key)))
  t.ok(most <= 8, `${most} at once`)
  for (const key of keys) t.ok((await client.gateway.get('bucket', key)).body.equals(body))
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
