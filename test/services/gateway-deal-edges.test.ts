import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t from 'tap'
import { NetworkError } from '../../src/services/network/network.js'
import { until } from '../support/waiting.js'
import { Scene } from './deal-scene.js'
import { Gate, ScriptedNetwork } from './scripted-network.js'

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

t.test('a request for one deal does not delay requests for any', async (t) => {
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

t.test('what takes the place of a cold object needs no deal', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  await scene.cold('key', large)
  const gate = new Gate()
  network.deliver = async function* (bytes) {
    yield bytes.subarray(0, 1)
    await gate.pass()
    throw new NetworkError('NotRetrievable', 'Lost.')
  }
  const retrieving = client.retrieve('bucket', 'key')
  await gate.reached()
  await client.put('bucket', 'key', 'new')
  gate.open()
  t.match(await retrieving, { status: 'success' })
  t.equal((await client.gateway.get('bucket', 'key')).text, 'new')
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

t.test('what could not be written down is done later', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  await client.put('bucket', 'key', large)
  const gate = new Gate()
  network.afterDone = gate.pass
  const deal = client.deal('bucket', 'key', {}, 'token')
  await gate.reached()
  await client.put('bucket', 'key', 'new')
  const index = new DatabaseSync(join(scene.folder, 'index.db'))
  index.exec('BEGIN IMMEDIATE')
  gate.open()
  t.match(await deal, { http: 500, status: 'fail' })
  t.equal(scene.count('retained'), 1)
  t.equal(scene.count('deals WHERE record IS NULL'), 1)
  index.exec('ROLLBACK')
  index.close()
  await until(
    'nothing is retained for a deal',
    () => scene.count('retained') === 0 && scene.count('deals WHERE record IS NULL') === 0,
  )
  await until('no file is left', () => scene.files().length === 0)
  t.match((await client.retrieve('bucket', 'key')).data.deals, [{ data: { dealCid: 'deal-0' } }])
  t.match(await client.deal('bucket', 'key', {}, 'token'), { status: 'success', data: { dealCid: 'deal-0' } })
})

t.test('what is left of a deal that failed keeps no gateway from starting', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  await client.put('bucket', 'key', 'x')
  const change = (sql: string): void => {
    const index = new DatabaseSync(join(scene.folder, 'index.db'))
    index.exec(sql)
    index.close()
  }
  change("CREATE TRIGGER full BEFORE DELETE ON deal_files BEGIN SELECT RAISE(ABORT, 'as on a full disk'); END")
  network.beforeDone = async () => {
    throw new NetworkError('TermsRefused', 'Too cheap.')
  }
  t.match(await client.deal('bucket', 'key', {}, 'token'), { status: 'fail', message: 'Too cheap.' })
  t.equal(scene.count('deals WHERE dropped = 1'), 1)
  await scene.running.stop()
  const again = await Scene.start(t, network, scene.folder)
  network.beforeDone = async () => {}
  t.match(await again.client.deal('bucket', 'key', {}, 'token'), { status: 'success' }, 'its token is free')
  change('DROP TRIGGER full')
  await until('one deal is left', () => again.count('deals') === 1 && again.count('deal_files') === 1)
})

t.test('the files of a deal go once it has ended, and its record stays', async (t) => {
  const network = new ScriptedNetwork()
  let scene = await Scene.start(t, network)
  const restart = async (as = network) => {
    await scene.running.stop()
    scene = await Scene.start(t, as, scene.folder)
  }
  for (let index = 0; index < 600; index += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, more) => scene.client.put('bucket', `${index + more}`, 'x')))
  }
  const cold = await scene.client.put('bucket', 'cold', 'cold')
  const lost = await scene.client.put('bucket', 'lost', large)
  t.match(await scene.client.deals('bucket', {}, 'bucket'), { data: { dealCid: 'deal-0' } })
  network.endEpoch = 5000
  t.match(await scene.client.deal('bucket', 'cold'), { data: { dealCid: 'deal-1' } })
  t.match(await scene.client.evict('bucket', 'cold', cold), { http: 200 })
  t.match(await scene.client.evict('bucket', 'lost', lost), { http: 200 })
  await restart()
  const settled = () => until('the expired deals are gone', () => scene.count('deals WHERE ends <= 3000') === 0)
  t.equal(scene.count('deal_files'), 603)

  network.now = 3000
  await restart(Object.assign(new ScriptedNetwork(), { kind: 'kubo' as const, now: 3000 }))
  t.equal(scene.count('deal_files'), 603, 'another network has other epochs')
  await restart()
  await until('three files of deals are left', () => scene.count('deal_files') === 3)
  t.equal(scene.count("deal_files WHERE key = CAST('lost' AS BLOB)"), 1)
  t.match((await scene.client.history('bucket')).data.deals, [{ data: { dealCid: 'deal-0' } }])
  t.match((await scene.client.ask('dealprogress/bucket')).data, { phase: 'Done', filesTotal: 602 })
  t.match(await scene.client.deals('bucket', {}, 'bucket'), { status: 'success', data: { dealCid: 'deal-0' } })
  const { deliver } = network
  network.deliver = (body, cid) => {
    if (cid === 'deal-0') throw new NetworkError('NotRetrievable', 'The deal ended at epoch 2000.')
    return deliver(body, cid)
  }
  t.match(await scene.client.retrieve('bucket', 'lost'), { status: 'fail', message: 'The deal ended at epoch 2000.' })
  t.match(await scene.client.retrieve('bucket', 'cold'), { status: 'success' })
  await restart()
  await until('two files of deals are left', () => scene.count('deal_files') === 2)
  await scene.remove('lost')
  await restart()
  await settled()
  t.equal(scene.count('deal_files'), 1, 'of the deal that has not ended')
  t.equal(scene.count('deals'), 2)

  await scene.running.stop()
  const index = new DatabaseSync(join(scene.folder, 'index.db'))
  index.exec('DROP INDEX deals_by_end; ALTER TABLE deals DROP COLUMN ends')
  index.close()
  network.now = 5000
  scene = await Scene.start(t, network, scene.folder)
  await settled()
  await until('no file of a deal is left', () => scene.count('deal_files') === 0)
  t.equal((await scene.client.history('bucket')).data.deals.length, 1, 'deals of an earlier version as well')
})
