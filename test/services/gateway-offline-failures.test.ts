import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { bytes } from '../support/content/content.js'
import { until } from '../support/waiting.js'
import { type OfflineScene, PUBLIC, startOffline, untilActive } from './offline-scene.js'

const BODY = bytes('key', 40_000)

function folders({ data }: OfflineScene): string[] {
  return readdirSync(join(data, 'gateway', 'offline'))
}

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

t.test('the copy stays when the provider lies about the bytes', async (t) => {
  const scene = await startOffline(t)
  const { client } = scene
  const generation = await client.put('bucket', 'key', BODY)
  const { uuid } = (await scene.post()).data.deals.data
  await untilActive(scene, uuid)
  await client.fault('corrupts-data')
  t.match(await client.evict('bucket', 'key', generation), { http: 409, status: 'fail' })
  t.ok((await client.gateway.get('bucket', 'key')).body.equals(BODY))
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

t.test('providers that were stopped half-way fetch once the gateway listens again', async (t) => {
  const first = await startOffline(t, { daemon: 'external' })
  await first.client.put('bucket', 'key', BODY)
  const { uuid } = (await first.post()).data.deals.data
  t.match(await first.show(uuid), { deals: [{ status: 'Created' }] })
  const { port } = first.services.gateway
  await first.services.stop()
  const second = await startOffline(t, { port }, first.data)
  await second.has(uuid, 'Downloaded')
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
