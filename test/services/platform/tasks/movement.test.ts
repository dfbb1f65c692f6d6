import t from 'tap'
import { parsePrice, sortable } from '../../../../services/platform/units.js'
import { csvOf, formOf, PRIVATE, PUBLIC, startTasks, type TaskScene } from './task-scene.js'

/** Epochs after which providers have bid, and after which the best bid has won. */
const BIDS = 2
const DECISION = 20

/** The clock of the scene: epochs of 30 seconds. */
const EPOCHS_PER_DAY = 2880

t.test('providers bid on a public task, and the best bid wins', async (t) => {
  const { scene, post, task, get } = await startTasks(t)
  const { control } = scene.network
  const uuid = await post(PUBLIC, csvOf(2))
  t.match(await task(uuid), { bid_count: 0, task: { status: 'Created', miner_id: null } })
  await control.advance(BIDS)
  const open = await task(uuid)
  t.match(open, { bid_count: 3, task: { status: 'Created', miner_id: null }, average_bid: '0.000000766666666666' })
  const bids = [
    { username: 't01000', price: '0.0000005', status: 'New', won_on: null },
    { username: 't01001', price: '0.000001' },
    { username: 't01005', price: '0.0000008' },
  ]
  t.match(open.bid, bids, 'those that take offline deals and pieces of this size')
  t.match(open.deal, [{ miner_id: null }, { miner_id: null }])
  await control.advance(DECISION - BIDS)
  const won = await task(uuid)
  t.match(won, { bid_count: 3, miner: { miner_id: 't01000' }, task: { status: 'Assigned', miner_id: 't01000' } })
  t.match(won.bid, [
    { status: 'Won', won_on: /^\d+$/ },
    { status: 'Lost', won_on: null },
    { status: 'Lost', won_on: null },
  ])
  t.match(won.deal, [{ miner_id: 1000 }, { miner_id: 1000 }])
  t.match((await get('/tasks?has_miner=1&status=assigned')).json, { total_items: 1 })
})

t.test('terms decide who bids', async (t) => {
  const { scene, post, task } = await startTasks(t)
  const { control } = scene.network
  const tasks = {
    verified: await post({ ...PUBLIC, type: 'verified' }, csvOf(1)),
    dear: await post({ ...PUBLIC, min_price: '0.5' }, csvOf(1)),
    cheap: await post({ ...PUBLIC, max_price: '0.0000001' }, csvOf(1)),
    huge: await post(PUBLIC, csvOf(1).replace(',2000', `,${40 * 2 ** 30}`)),
    unknown: await post({ ...PUBLIC, max_price: '0.0000001' }, csvOf(1).replace(',2000', ',')),
    byHand: await post({ ...PUBLIC, bid_mode: '0' }, csvOf(1)),
  }
  await control.setFault('t01000', 'offline', true)
  await control.advance(DECISION)
  const bidders = async (uuid: string): Promise<string> => {
    const { bid } = await task(uuid)
    return bid.map(({ username, price }: { username: string; price: string }) => `${username} ${price}`).join()
  }
  t.equal(await bidders(tasks.verified), 't01001 0,t01005 0.00000008')
  t.equal(await bidders(tasks.dear), 't01001 0.5,t01005 0.5', 'raised to the lowest price that the task names')
  t.equal(await bidders(tasks.cheap), '')
  t.equal(await bidders(tasks.huge), 't01003 0.00000005', 'takes pieces of 64 GiB')
  t.equal(await bidders(tasks.unknown), 't01003 0.00000005', 'a size that is not known does not count')
  t.match(await task(tasks.dear), { miner: { miner_id: 't01001' } }, 'the same price: the higher score wins')
  t.match(await task(tasks.byHand), { bid_count: 2, task: { status: 'Created', miner_id: null } })
  t.match(await task(tasks.cheap), { task: { status: 'Created' } })
  await control.setFault('t01000', 'offline', false)
  await control.advance(DECISION)
  t.equal(await bidders(tasks.byHand), 't01001 0.000001,t01005 0.0000008,t01000 0.0000005', 'it is back')
})

t.test('owners decide whether their providers bid, and how often', async (t) => {
  const tasks = await startTasks(t)
  const { scene, post, task } = tasks
  await setMiner(tasks, { miner_fid: 't01000', bid_mode: '0' })
  await setMiner(tasks, { miner_fid: 't01001', auto_bid_task_per_day: '1' })
  await setMiner(tasks, { miner_fid: 't01005', offline_deal_available: 'false' })
  const posted = [await post(PUBLIC, csvOf(1)), await post(PUBLIC, csvOf(1))]
  await scene.network.control.advance(DECISION)
  const shown = await Promise.all(posted.map(task))
  const [won, other] = shown.sort((a, b) => b.bid_count - a.bid_count)
  t.match(won, { bid: [{ username: 't01001' }], bid_count: 1, miner: { miner_id: 't01001' } })
  t.match(other, { bid: [], bid_count: 0, task: { status: 'Created' } })
})

t.test('a task expires', async (t) => {
  const { scene, post, task, get } = await startTasks(t)
  const { control } = scene.network
  const nobody = await post({ ...PUBLIC, max_price: '0', expire_days: '1' }, csvOf(1))
  const byHand = await post({ ...PUBLIC, bid_mode: '0', expire_days: '2' }, csvOf(1))
  const won = await post({ ...PUBLIC, expire_days: '1' }, csvOf(1))
  const own = await post({ ...PRIVATE, expire_days: '1' }, csvOf(1))
  await control.advance(EPOCHS_PER_DAY - 1)
  t.match((await task(nobody)).task, { status: 'Created' })
  await control.advance(1)
  t.match(await task(nobody), { task: { status: 'ActionRequired', miner_id: null }, bid_count: 0 })
  t.match((await task(byHand)).task, { status: 'Created' })
  await control.advance(10 * EPOCHS_PER_DAY)
  t.match(await task(byHand), { task: { status: 'ActionRequired' }, bid: [{ status: 'Lost' }, {}, {}] })
  for (const uuid of [won, own]) t.match((await task(uuid)).task, { status: 'Assigned' })
  t.match((await get('/tasks?status=ActionRequired')).json, { total_items: 2 })
})

t.test('a task in time that jumps, and across a restart', async (t) => {
  const { scene, client, post, task } = await startTasks(t)
  const uuid = await post({ ...PUBLIC, expire_days: '1' }, csvOf(1))
  await scene.network.control.advance(100 * EPOCHS_PER_DAY)
  t.match((await task(uuid)).task, { status: 'Assigned' }, 'the decision came before the end')
  const second = await post({ ...PUBLIC, expire_days: '1' }, csvOf(1))
  await scene.network.control.advance(BIDS)
  t.equal((await task(second)).bid_count, 3)
  const again = await scene.restart()
  await scene.network.control.advance(DECISION)
  t.match((await again.call('GET', `/tasks/${second}`, { token: client })).json.data.task, { status: 'Assigned' })
})

t.test('deals move their task', async (t) => {
  const { scene, client, post, task, put, get } = await startTasks(t)
  const uuid = await post(PRIVATE, csvOf(2))
  const { deal } = await task(uuid)
  const write = async (n: number, status: string): Promise<void> => {
    const answer = await put(`/my_miner/deals/${deal[n].id}`, { status })
    t.match(answer, { status: 200, json: { data: { deal: { status } } } })
  }
  const state = async (): Promise<string> => (await task(uuid)).task.status
  await write(0, 'Downloading')
  t.equal(await state(), 'Assigned')
  await write(0, 'DownloadFailed')
  t.equal(await state(), 'ProgressWithFailure')
  await write(0, 'Downloaded')
  t.equal(await state(), 'Assigned')
  t.match((await task(uuid)).deal[0], { status: 'Downloaded' })
  await scene.network.control.advance(1)
  t.match((await task(uuid)).deal[0], { status: 'ReadyForImport' }, 'the platform lets the provider import')
  for (const status of ['FileImporting', 'FileImported', 'DealActive']) await write(0, status)
  t.match(await task(uuid), { deal_complete_rate: '50.00', task: { status: 'Assigned' } })
  t.match((await get('/tasks', client)).json.data.task, [{ successful_deal_count: 1, deal_count: 2 }])
  await write(1, 'ImportFailed')
  t.equal(await state(), 'ProgressWithFailure')
  await write(1, 'DealActive')
  t.match(await task(uuid), {
    deal_complete_rate: '100.00',
    task: { status: 'Completed' },
    poster: { complete_task_count: 1 },
  })
})

t.test('prices are exact', async (t) => {
  t.equal(parsePrice('0.0000005'), 500_000_000_000n)
  t.equal(parsePrice('5E-7'), 500_000_000_000n)
  t.equal(parsePrice('0E-18'), 0n)
  t.equal(parsePrice('1.000000000000000001'), 10n ** 18n + 1n)
  t.equal(parsePrice('1E9'), 10n ** 27n)
  for (const text of ['', '-1', '.5', '1e', '1E-19', '1E10', '0x1']) t.equal(parsePrice(text), undefined, text)
  t.ok(sortable(parsePrice('9') as bigint) < sortable(parsePrice('10') as bigint))
})

t.test('a user has so many open tasks', async (t) => {
  const { scene, provider, client, post, get } = await startTasks(t, { limits: { maxOpenTasks: 2 } })
  const send = (token: string) => scene.call('POST', '/tasks', { body: formOf(PUBLIC, null), token })
  await post({ ...PUBLIC, bid_mode: '0', expire_days: '1' }, null)
  await post(PRIVATE, csvOf(1))
  const message = /^You have 2 open tasks, and may have at most 2\. Post it when/
  t.match(await send(client), { status: 409, json: { status: 'fail', message } })
  t.equal((await send(provider)).status, 200, 'each user has a quota')
  await scene.network.control.advance(Math.ceil(86_400 / scene.network.epochSeconds))
  t.match((await get('/tasks?is_public=1', client)).json, { data: { task: [{ status: 'ActionRequired' }] } })
  t.equal((await send(client)).status, 200, 'an expired task is not open')
})

t.test('a user has so many open deals', async (t) => {
  const { scene, client, put, get } = await startTasks(t, { limits: { maxOpenDeals: 5 } })
  const send = (deals: number, more = {}) =>
    scene.call('POST', '/tasks', { body: formOf({ ...PRIVATE, ...more }, csvOf(deals)), token: client })
  const uuid = 'aaaaaaaa-0000-4000-8000-000000000000'
  t.equal((await send(3, { uuid })).status, 200)
  const message = /^You have 3 open deals, and may have at most 5: this task has 3 more\./
  t.match(await send(3), { status: 409, json: { status: 'fail', message } })
  t.match((await get('/tasks', client)).json, { total_items: 1 }, 'a refused task leaves nothing')
  t.equal((await send(2)).status, 200)
  t.equal((await send(3, { uuid })).status, 200, 'a repeated request is no further task')
  const { deal } = (await get('/offline_deals/t01000', client)).json.data
  for (const [n, status] of ['DealActive', 'ImportFailed'].entries())
    await put(`/my_miner/deals/${deal[n].id}`, { status })
  t.equal((await send(2)).status, 200, 'deals that are active or given up are not open')
})

async function setMiner({ scene, provider }: TaskScene, form: Record<string, string>): Promise<void> {
  const body = new URLSearchParams(form)
  const { status, json } = await scene.call('POST', '/miner/info', { body, token: provider })
  if (status !== 200) throw new Error(`POST /miner/info was answered with ${status}: ${json.message}`)
}

t.test('no provider bids where none is looked for, or on a task without deals', async (t) => {
  const { scene, post, task } = await startTasks(t)
  const none = await post({ ...PUBLIC, bid_mode: '2', expire_days: '1' }, csvOf(1))
  const empty = await post(PUBLIC, null)
  const emptyForADay = await post({ ...PUBLIC, expire_days: '1' }, null)
  await scene.network.control.advance(BIDS)
  for (const uuid of [none, empty, emptyForADay]) t.match(await task(uuid), { bid_count: 0 })
  await scene.network.control.advance(EPOCHS_PER_DAY)
  for (const uuid of [none, emptyForADay])
    t.match(await task(uuid), { bid_count: 0, task: { status: 'ActionRequired', miner_id: null } })
  t.match(await task(empty), { bid_count: 0, task: { status: 'Created', miner_id: null } })
})

t.test('a bid wins while its days last, and is renewed by a provider that still bids', async (t) => {
  const tasks = await startTasks(t)
  const { control } = tasks.scene.network
  const uuid = await tasks.post({ ...PUBLIC, max_price: '0.0000005' }, csvOf(1))
  await control.advance(BIDS)
  t.match(await tasks.task(uuid), { bid: [{ username: 't01000', expire_days: 5 }] })
  await control.setFault('t01000', 'offline', true)
  await setMiner(tasks, { miner_fid: 't01000', bid_mode: '0' })
  await control.advance(6 * EPOCHS_PER_DAY)
  await tasks.task(uuid)
  await control.setFault('t01000', 'offline', false)
  await control.advance(7 * EPOCHS_PER_DAY)
  t.match(await tasks.task(uuid), { bid_count: 1, task: { status: 'Created' } })
  await setMiner(tasks, { miner_fid: 't01000', bid_mode: '1' })
  await control.advance(14 * EPOCHS_PER_DAY)
  t.match(await tasks.task(uuid), { bid_count: 1, bid: [{ status: 'Won' }], task: { miner_id: 't01000' } })
})
