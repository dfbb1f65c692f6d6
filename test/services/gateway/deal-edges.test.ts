import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t from 'tap'
import { NetworkError } from '../../../services/network/network.js'
import { DatabaseUnavailableError } from '../../../services/store/database.js'
import { until } from '../../support/waiting.js'
import { Gate } from '../scripted-network.js'
import { startDeals, UNTIL_ACTIVE } from './deal-client.js'
import { Scene } from './deal-scene.js'

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

t.test('a deal that the network may have made is found out, and not made again', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  await client.put('bucket', 'key', large)
  network.afterDone = async () => {
    throw new DatabaseUnavailableError('the answer is lost')
  }
  t.match(await client.deal('bucket', 'key', {}, 'token'), { http: 503, retryAfter: '1', status: 'fail' })
  await until('its outcome is known', () => scene.count('deals WHERE record IS NULL') === 0)
  network.afterDone = async () => {}
  t.match(await client.deal('bucket', 'key', {}, 'token'), { status: 'success', data: { dealCid: 'deal-0' } })
  t.equal(network.deals.size, 1)
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
  const again = await Scene.start(t, { of: scene })
  network.beforeDone = async () => {}
  t.match(await again.client.deal('bucket', 'key', {}, 'token'), { status: 'success' }, 'its token is free')
  change('DROP TRIGGER full')
  await until('one deal is left', () => again.count('deals') === 1 && again.count('deal_files') === 1)
})

/** In the index, in a file, and nothing at all. */
const bodies = [Buffer.from('small'), randomBytes(100_000), Buffer.alloc(0)]

t.test('an object of which only deals have the bytes', async (t) => {
  const client = await startDeals(t)
  const { gateway } = client
  const { host } = new URL(gateway.url)
  for (const [index, body] of bodies.entries()) {
    const key = `folder/${index}`
    const generation = await client.put('bucket', key, body, { 'x-cloud-meta-colour': 'red' })
    const hot = await gateway.head('bucket', key)
    const { data: deal } = await client.deal('bucket', key)
    await client.advance(UNTIL_ACTIVE)
    const told = { bucket_name: 'bucket', file_name: key, generation, size: body.length }
    t.match(await client.evict('bucket', key, generation), {
      http: 200,
      data: { ...told, dealCid: deal.dealCid, minerId: 't01000' },
      status: 'success',
    })
    t.equal(await client.used(), 0)

    const cold = await gateway.head('bucket', key)
    const { date: _, ...before } = hot.headers
    t.match(cold, { status: 200, headers: { ...before, 'x-cloud-storage-state': 'cold' } }, 'nothing else has changed')
    for (const asked of [{}, { range: 'bytes=0-1' }, { 'if-none-match': String(hot.headers.etag) }]) {
      const refused = await gateway.get('bucket', key, asked as Record<string, string>)
      t.match(refused, { status: 403, headers: { 'x-cloud-error-code': 'InvalidObjectState' } })
      t.match(refused.text, /bring it back with GET retrieve/)
    }
    const { url } = await gateway.call('PresignedGet', { host, bucket: 'bucket', object: key, expiry: 60 })
    const shared = await gateway.send(url.slice(host.length), { headers: { host } })
    t.match([shared.status, shared.text], [403, /<Code>InvalidObjectState<\/Code>/])
    for (const params of [{ delimiter: '' }, { prefix: 'folder/', maxKeys: 10 }, { prefix: 'folder/' }]) {
      const { objects } = await gateway.call('ListObjects', { bucketName: 'bucket', ...params })
      t.match(objects.at(-1), { name: key, size: body.length, generation, cold: true })
    }
    t.match(await client.evict('bucket', key, generation), { http: 409, message: /no local copy/ })

    t.match(await client.retrieve('bucket', key), {
      http: 200,
      message: 'The object has been brought back.',
      data: { file_name: key, deals: [{ data: deal }] },
    })
    const again = await gateway.get('bucket', key)
    t.ok(again.body.equals(body))
    t.match(again.headers, { 'x-cloud-generation': generation, 'x-cloud-storage-state': undefined })
    t.equal(await client.used(), body.length)
    t.match(await client.evict('bucket', key, generation), { status: 'success' }, 'and again')
  }
})

t.test('overwriting and removing it', async (t) => {
  const client = await startDeals(t)
  const { gateway } = client
  for (const [index, body] of bodies.entries()) {
    const key = `${index}`
    await client.putCold('bucket', key, body)
    await client.put('bucket', key, 'new')
    t.equal((await gateway.get('bucket', key)).text, 'new')
    t.equal(await client.used(), 3)
    t.match(await client.retrieve('bucket', key), { status: 'success', message: 'The deals made of the object.' })
    t.equal((await gateway.get('bucket', key)).text, 'new', 'what was before does not come back')
    await gateway.call('RemoveObject', { bucketName: 'bucket', objects: [key] })

    await client.putCold('bucket', key, body)
    await gateway.call('RemoveObject', { bucketName: 'bucket', objects: [key] })
    t.equal((await gateway.head('bucket', key)).status, 404)
    t.equal(await client.used(), 0)
  }
  await gateway.call('DeleteBucket', { bucketName: 'bucket' })
  await gateway.call('MakeBucket', { bucketName: 'bucket' })
  await client.put('bucket', '0', 'x')
  t.same((await client.retrieve('bucket', '0')).data.deals, [], 'another bucket has another history')
})

t.test('what is refused, and changes nothing', async (t) => {
  const client = await startDeals(t)
  const { gateway } = client
  const old = await client.put('bucket', 'key', 'old')
  const refused = async (generation: string, message: RegExp) => {
    t.match(await client.evict('bucket', 'key', generation), { http: 409, status: 'fail', data: null, message })
    t.equal((await gateway.get('bucket', 'key')).status, 200)
  }
  await refused(old, /No deal holds the current generation of this object/)
  await client.deal('bucket', 'key')
  await refused(old, /is not active, but StorageDealCheckForAcceptance/)
  await client.advance(UNTIL_ACTIVE)
  await client.fault('offline')
  await refused(old, /t01000 is offline/)
  await client.fault('offline', false)
  const generation = await client.put('bucket', 'key', 'new')
  await refused(old, /has been overwritten/)
  await refused(generation, /No deal holds/)
  await client.deal('bucket', 'key')
  await client.advance(UNTIL_ACTIVE)
  await client.fault('loses-data')
  await refused(generation, /Nothing was removed: /)
  for (const body of ['', '{"Generation":1}', '{"Generation":""}'])
    t.match(await client.ask('evict/bucket/key', body), { http: 400, status: 'fail', message: /\w/ })
  await client.fault('loses-data', false)

  const multipart = await client.put('bucket', 'key', 'parts', { 'x-cloud-etag': `${'a'.repeat(32)}-2` })
  await client.deal('bucket', 'key')
  await client.advance(UNTIL_ACTIVE)
  t.match(await client.evict('bucket', 'key', multipart), { status: 'success' }, 'an ETag that is no MD5')
  t.match(await client.retrieve('bucket', 'key'), { status: 'success' })
  t.match(await gateway.get('bucket', 'key'), { text: 'parts', headers: { etag: `"${'a'.repeat(32)}-2"` } })
  const wrong = await client.put('bucket', 'key', 'parts', { 'x-cloud-etag': 'a'.repeat(32) })
  await client.deal('bucket', 'key')
  await client.advance(UNTIL_ACTIVE)
  await refused(wrong, /delivered other bytes/)
})
