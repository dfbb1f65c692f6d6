import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t from 'tap'
import { silentLog } from '../../../../src/services/log.js'
import { startPlatform } from '../../../../src/services/platform/platform.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { afterEachStep, CrashImages } from '../../crash-images.js'
import { send } from '../platform-client.js'
import { csvOf, DEAL_CID, formOf, MD5, PRIVATE, startTasks, URL_OF_CAR } from './task-scene.js'

t.setTimeout(300_000)

/** As clients older than bid modes post a task: none of them is named. */
const OPEN = { task_name: 'by hand', is_public: '1', type: 'verified', miner_id: '' }
const MINER = { miner_fid: 't01000' }

/** The CSV of such a client, once it has sent its deals. */
function sentBy(uuid: string, deals = 1): string {
  const row = (n: number) => `${uuid},t01000,${n === 0 ? DEAL_CID : ''},${URL_OF_CAR}?${n},${MD5},12\n`
  return `uuid,miner_id,deal_cid,file_source_url,md5,start_epoch\n${Array.from({ length: deals }, (_, n) => row(n)).join('')}`
}

t.test('a public task without a bid mode waits for its poster, who names the provider and the deals', async (t) => {
  const { scene, client, provider, post, task, get } = await startTasks(t)
  const uuid = await post(OPEN, csvOf(3))
  await scene.network.control.advance(30)
  const before = await task(uuid)
  t.match(before, { task: { uuid, status: 'Created', miner_id: null }, total_deal_count: 3 })
  t.ok(before.bid_count > 0, 'providers bid')
  const put = (form: FormData, token = client, id = uuid) =>
    scene.call('PUT', `/uuid_tasks/${id}`, { body: form, token })
  const other = await scene.addUser('other@example.com')
  const own = sentBy(uuid)
  const refused: readonly [number, RegExp, FormData, string?, string?][] = [
    [401, /token is not valid/, formOf(MINER, own), ''],
    [403, /Only the poster/, formOf(MINER, own), other],
    [404, /no such task/, formOf(MINER, own), client, 'aaaaaaaa-0000-4000-8000-000000000000'],
    [404, /no such task/, formOf(MINER, own), other, await post(PRIVATE)],
    [400, /miner_fid is missing/, formOf({}, own)],
    [400, /miner_fid: there is no storage provider/, formOf({ miner_fid: 't09999' }, own)],
    [400, /file is missing/, formOf(MINER, null)],
    [400, /column uuid/, formOf(MINER, own.replace(uuid, 'aaaaaaaa-0000-4000-8000-000000000000'))],
    [400, /column miner_id/, formOf({ miner_fid: 't01001' }, own)],
    [400, /Row 3, column md5/, formOf(MINER, `${sentBy(uuid)}${uuid},t01000,,${URL_OF_CAR},x,1\n`)],
  ]
  for (const [status, message, form, token, id] of refused) {
    t.match(await put(form, token, id), { status, json: { status: 'fail', message } }, String(message))
  }
  t.same(await task(uuid), before, 'nothing has changed')

  const done = await put(formOf(MINER, own))
  t.match(done, { status: 200, json: { status: 'success', data: { uuid, filename: 'deals.csv' } } })
  const after = await task(uuid)
  t.match(after, {
    task: { status: 'Assigned', miner_id: 't01000' },
    total_deal_count: 1,
    deal: [{ deal_cid: DEAL_CID }],
  })
  t.same(
    after.bid.filter(({ status }: { status: string }) => status !== 'Lost').map((bid: object) => bid),
    after.bid.filter(({ username, status }: Record<string, string>) => username === 't01000' && status === 'Won'),
  )
  t.match((await get('/offline_deals/t01000?deal_status=Created', provider)).json.data.deal, [
    { task_id: after.task.task_id },
  ])
  t.match(await put(formOf(MINER, own)), { status: 200, json: { data: { uuid } } }, 'a repeated request')
  t.match(await put(formOf(MINER, sentBy(uuid, 2))), { status: 409, json: { message: /provider t01000 already/ } })
  t.equal((await task(uuid)).total_deal_count, 1)
})

t.test('an expired task can have a provider, within the bound of open deals', async (t) => {
  const { scene, client, post, task } = await startTasks(t, { limits: { maxOpenTasks: 1, maxOpenDeals: 3 } })
  const expiring = await post({ ...OPEN, expire_days: '1' }, csvOf(3))
  const put = (uuid: string, deals: number) =>
    scene.call('PUT', `/uuid_tasks/${uuid}`, { body: formOf(MINER, sentBy(uuid, deals)), token: client })
  t.match(await put(expiring, 4), { status: 409, json: { message: /at most 3/ } })
  await scene.network.control.advance(2881)
  t.equal((await task(expiring)).task.status, 'ActionRequired')
  t.equal((await put(expiring, 3)).status, 200)
  t.match(await task(expiring), { task: { status: 'Assigned' }, total_deal_count: 3 })
})

t.test('a crash after any step leaves the task as it was, or with its provider and all new deals', async (t) => {
  const { scene, client, post } = await startTasks(t)
  const [before, after] = [2500, 3000]
  const uuid = await post(OPEN, csvOf(before))
  const crashes = new CrashImages(join(scene.folder, 'platform'), temporaryFolder(t))
  const images: { folder: string; answered: boolean }[] = []
  let answered = false
  const look = (): void => {
    const folder = crashes.take()
    if (folder !== undefined) images.push({ folder, answered })
  }
  const form = () => formOf(MINER, sentBy(uuid, after))
  await afterEachStep(look, async () => {
    t.equal((await scene.call('PUT', `/uuid_tasks/${uuid}`, { body: form(), token: client })).status, 200)
    answered = true
    look()
  })
  t.ok(images.length > 2, `${images.length} crashes`)
  for (const { folder, answered } of images) {
    const platform = await startPlatform(
      folder,
      { host: '127.0.0.1', port: 0, daemon: 'external' },
      { network: scene.network },
      silentLog,
    )
    try {
      const { json } = await send(platform.url, 'GET', `/tasks/${uuid}`, { token: client })
      const isNew = json.data.task.status === 'Assigned'
      t.ok(isNew || !answered, 'what was answered is there')
      t.equal(json.data.total_deal_count, isNew ? after : before)
      const db = new DatabaseSync(join(folder, 'platform.db'), { readOnly: true })
      const deals = db.prepare('SELECT count(*) AS count FROM deals').get()?.count
      db.close()
      t.equal(deals, isNew ? after : before, 'no deal of the other list is left')
      t.equal((await send(platform.url, 'PUT', `/uuid_tasks/${uuid}`, { body: form(), token: client })).status, 200)
    } finally {
      await platform.stop()
    }
  }
})
