import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t from 'tap'
import { bytes } from '../../support/content/content.js'
import { lastingPort } from '../../support/server/ports.js'
import { until } from '../../support/waiting.js'
import { startDeals } from './deal-client.js'
import { type OfflineScene, PRIVATE, PUBLIC, startOffline, untilActive } from './offline-scene.js'

const SIZES = [20_000, 30_000, 40_000, 500, 60_000]

async function fill({ client }: OfflineScene): Promise<Map<string, string>> {
  const generations = new Map<string, string>()
  for (const [n, size] of SIZES.entries()) {
    const key = n === 3 ? 'folder/small' : `object-${n}`
    generations.set(key, await client.put('bucket', key, bytes(key, size)))
  }
  return generations
}

/** The tasks whose CARs are on the disk. */
function folders({ data }: OfflineScene): string[] {
  return readdirSync(join(data, 'gateway', 'offline'))
}

t.test('a bucket becomes a task whose CARs a provider stores', async (t) => {
  const port = await lastingPort()
  const publicUrl = `http://localhost:${port}/`
  const scene = await startOffline(t, { limits: { maxCarBytes: 80_000 }, port, publicUrl })
  const { client } = scene
  t.ok((await client.gateway.call('ServerInfo')).GatewayFeatures.includes('offline-deals'))
  const generations = await fill(scene)
  const answer = await scene.post(PRIVATE, 'token')
  t.match(answer, { http: 200, status: 'success', message: /notification email has been sent/ })
  t.match(answer.data, {
    bucket_name: 'bucket',
    deals: {
      data: { taskname: 'nightly', filename: String, uuid: String },
      status: 'success',
      message: answer.message,
    },
  })
  const { uuid } = answer.data.deals.data
  t.same((await scene.post(PRIVATE, 'token')).data, answer.data, 'a repeated token is the same task')
  t.match(await scene.post({ ...PRIVATE, Task_Name: 'other' }, 'token'), { http: 409, status: 'fail' })

  const { deals, task_status } = await scene.show(uuid)
  t.equal(task_status, 'DealSent')
  t.equal(deals.length, 3, 'as many CARs as their size asks')
  t.same(deals.flatMap(({ objects }) => objects).sort(), [...generations.keys()].sort())
  for (const deal of deals) {
    t.ok(deal.car_size <= 80_000)
    t.match(deal, {
      file_source_url: new RegExp(`^${publicUrl}gateway/car/[\\w-]{43}$`),
      deal_id: Number,
      deal_cid: /^baf/,
      miner_fid: 't01000',
      payload_cid: /^baf/,
      piece_cid: /^baga/,
      piece_size: Number,
      start_epoch: Number,
      end_epoch: Number,
    })
  }
  t.match(await client.ask(`dealstatus/${deals[0]?.deal_cid}`), { data: { state: 'StorageDealCheckForAcceptance' } })
  await untilActive(scene, uuid, 3)
  t.equal((await scene.show(uuid)).task_status, 'Completed')
  await until('the CARs are removed', () => folders(scene).length === 0)
  for (const { file_source_url } of deals) t.equal((await fetch(file_source_url)).status, 404)
  t.equal((await client.history('bucket')).data.deals.length, 3, 'they are deals of the bucket')

  for (const [key, generation] of generations)
    t.match(await client.evict('bucket', key, generation), { http: 200, status: 'success' }, `${key} is given up`)
  t.equal(await client.used(), 0)
  for (const [n, key] of [...generations.keys()].entries()) {
    t.match(await client.retrieve('bucket', key), { status: 'success' })
    t.ok((await client.gateway.get('bucket', key)).body.equals(bytes(key, SIZES[n] ?? 0)), `${key} is back`)
  }
})

t.test('the best bid stores the CAR of a public task, with the wallet and the price of the client', async (t) => {
  const scene = await startOffline(t)
  const { client } = scene
  await client.put('bucket', 'a/b', 'content')
  await client.put('bucket', 'a0', 'not below the prefix')
  const { data } = await scene.post({ ...PUBLIC, Prefix: 'a/' })
  const { uuid } = data.deals.data
  t.match(await scene.show(uuid), {
    task_status: 'Created',
    deals: [{ status: 'Created', objects: ['a/b'], deal_cid: null }],
  })
  await scene.advance(20)
  await scene.show(uuid)
  await untilActive(scene, uuid)
  const { deals, task_status } = await scene.show(uuid)
  t.equal(task_status, 'Completed')
  const [deal] = deals
  t.equal(deal?.miner_fid, 't01000')
  const { data: history } = await client.history('bucket')
  const { walletAddress } = (await client.deal('bucket', 'a0')).data
  t.match(history.deals, [{ data: { dealCid: deal?.deal_cid, minerId: 't01000', walletAddress } }])
  t.equal(history.deals.length, 1)
})

t.test('CARs are served to those who know their secret, in ranges too', async (t) => {
  const scene = await startOffline(t, { daemon: 'external' })
  await fill(scene)
  const { uuid } = (await scene.post()).data.deals.data
  const [{ file_source_url: url = '', car_size = 0 } = {}] = (await scene.show(uuid)).deals
  const car = Buffer.from(await (await fetch(url)).arrayBuffer())
  t.equal(car.length, car_size)
  const part = await fetch(url, { headers: { range: 'bytes=100-199' } })
  t.equal(part.headers.get('content-range'), `bytes 100-199/${car_size}`)
  t.ok(Buffer.from(await part.arrayBuffer()).equals(car.subarray(100, 200)))
  t.equal((await fetch(url, { headers: { range: `bytes=${car_size}-` } })).status, 416)
  t.equal((await fetch(url, { method: 'HEAD' })).headers.get('content-length'), String(car_size))
  t.equal((await fetch(`${url}x`)).status, 404)
  t.equal((await fetch(url, { method: 'POST' })).status, 405)
})

t.test('what is refused, and leaves nothing', async (t) => {
  const scene = await startOffline(t)
  const { client } = scene
  t.match(await scene.post(), { http: 400, status: 'fail', message: /no objects/ }, 'an empty bucket')
  await client.put('bucket', 'key', 'content')
  t.match(await scene.post(PRIVATE, undefined, 'missing'), { http: 404, status: 'fail' })
  const wrong: [object, RegExp][] = [
    [{ Miner_Id: '' }, /miner_id is missing/],
    [{ Max_Price: '0.0000001' }, /more than Max_Price/],
    [{ Miner_Id: 't01002' }, /no offline deals/],
    [{ Miner_Id: 't01003' }, /smaller than/],
    [{ Duration: '5' }, /duration/],
    [{ Task_Name: 5 }, /must be a text/],
    [{ Max_Piece_Bytes: '64 KiB' }, /whole number/],
  ]
  for (const [body, message] of wrong) {
    const answer = await scene.post({ ...PRIVATE, ...body }, 'token')
    t.match(answer, { http: 400, status: 'fail', message }, JSON.stringify(body))
    t.match(answer.data, { bucket_name: 'bucket', deals: { data: { uuid: '' }, status: 'fail' } })
  }
  t.match(await client.ask('offlinedeals/bucket?uuid=x'), { http: 404, status: 'fail' })
  t.same(folders(scene), [])
  t.same((await client.history('bucket')).data.deals, [])
  t.match(await scene.post(PRIVATE, 'token'), { http: 200 }, 'the token of what failed may be used again')
})

t.test('gateways without a platform, and public ones, have no offline deals', async (t) => {
  const alone = await startDeals(t)
  t.match(await alone.ask('offlinedeals/bucket', PRIVATE), { http: 501, message: /--platform-url/ })
  t.notOk((await alone.gateway.call('ServerInfo')).GatewayFeatures.includes('offline-deals'))
  t.equal((await alone.send('offlinedeals/bucket?uuid=x')).status, 405)
  const legacy = await startOffline(t, { quirks: ['plain-deals'] })
  t.match(await legacy.post(), {
    http: 501,
    message: 'Backing a bucket up as an offline deal is not implemented by this gateway.',
  })
  t.notOk(existsSync(join(legacy.data, 'gateway', 'offline')))
})

const BODY = bytes('key', 40_000)

t.test('without a bidder the task expires, and the CARs are removed', async (t) => {
  const scene = await startOffline(t)
  await scene.client.put('bucket', 'key', BODY)
  const { uuid } = (await scene.post({ ...PUBLIC, Max_Price: '0', Expire_Days: '1' })).data.deals.data
  t.equal(folders(scene).length, 1)
  await scene.advance(23)
  t.match(await scene.show(uuid), { task_status: 'ActionRequired', deals: [{ status: 'Created', deal_cid: null }] })
  t.same(folders(scene), [])
  t.match(await scene.show(uuid), { task_status: 'ActionRequired' })
})

t.test('a provider that is gone for a while goes on, also after a restart of all', async (t) => {
  const first = await startOffline(t)
  await first.client.put('bucket', 'key', BODY)
  const { uuid } = (await first.post()).data.deals.data
  await first.has(uuid, 'Downloaded')
  await first.client.fault('offline')
  await first.advance(1)
  await first.has(uuid, 'ReadyForImport')
  await first.advance(1)
  await first.has(uuid, 'FileImporting')
  const { port } = first.services.gateway
  await first.services.stop()
  const second = await startOffline(t, { port }, first.data)
  await second.client.fault('offline', false)
  await until('the provider goes on', async () => {
    await second.advance(1)
    return (await second.show(uuid)).deals[0]?.status === 'FileImported'
  })
})

t.test('a provider whose download failed may try again until the deal can no longer begin', async (t) => {
  const scene = await startOffline(t, { daemon: 'external' })
  const { client } = scene
  await client.put('bucket', 'key', BODY)
  const { uuid } = (await scene.post()).data.deals.data
  const { file_source_url: url = '', deal_id = null } = (await scene.show(uuid)).deals[0] ?? {}
  await scene.write(deal_id, 'DownloadFailed')
  t.match(await scene.show(uuid), { deals: [{ status: 'DownloadFailed' }] })
  t.equal((await fetch(url)).status, 200, 'the CAR is still there')
  await scene.write(deal_id, 'Waiting')
  t.match(await scene.show(uuid), { deals: [{ status: 'Waiting' }] })
  await scene.write(deal_id, 'DownloadFailed')
  const epochs = await client.ask(`dealstatus/${(await scene.show(uuid)).deals[0]?.deal_cid}`)
  await scene.advance(epochs.data.startEpoch - epochs.data.epoch)
  await scene.show(uuid)
  t.same(folders(scene), [], 'nothing of it can be stored any more')
})

t.test('no more is proposed than the client has measured', async (t) => {
  const scene = await startOffline(t)
  const { client } = scene
  const bound = { ...PRIVATE, Max_Piece_Bytes: '65536' }
  await client.put('bucket', 'added', bytes('added', 150_000))
  const refused = await scene.post(bound, 'token')
  t.match(refused, { http: 400, status: 'fail', message: /262144 bytes.*Max_Piece_Bytes is 65536/ })
  t.same(folders(scene), [])
  t.same((await client.history('bucket')).data.deals, [], 'nothing is proposed')
  const made = await scene.post({ ...bound, Max_Piece_Bytes: '262144' }, 'token')
  t.match(made, { http: 200 }, 'the same token may be used again')
  t.same((await scene.post(PRIVATE, 'token')).data, made.data, 'the bound is no part of what is asked')
})

t.test('the CARs of an account have a bound, until they are removed', async (t) => {
  const scene = await startOffline(t, { limits: { maxCarBytesOfAccount: 100_000 } })
  const { client } = scene
  await client.put('bucket', 'key', bytes('key', 60_000))
  const { uuid } = (await scene.post()).data.deals.data
  const refused = await scene.post({ ...PRIVATE, Task_Name: 'second' })
  t.match(refused, { http: 400, status: 'fail', message: /of this account.*100000 are the most/ })
  t.same(folders(scene), [uuid])
  await untilActive(scene, uuid)
  await until('the CAR is removed', () => folders(scene).length === 0)
  t.match(await scene.post({ ...PRIVATE, Task_Name: 'second' }), { http: 200 })
})

t.test('a task whose packing nothing goes on with is made again', async (t) => {
  const scene = await startOffline(t)
  await scene.client.put('bucket', 'key', 'content')
  const { uuid } = (await scene.post(PRIVATE, 'token')).data.deals.data
  const index = new DatabaseSync(join(scene.data, 'gateway', 'index.db'))
  index.exec("UPDATE offline_tasks SET state = 'packing'")
  index.close()
  const answers = await Promise.all([scene.post(PRIVATE, 'token'), scene.post(PRIVATE, 'token')])
  const made = answers.map(({ status, data }) => [status, data.deals.data.uuid])
  t.same(made[0], made[1])
  t.equal(made[0]?.[0], 'success')
  t.not(made[0]?.[1], uuid)
})
