import t from 'tap'
import { expiryOf } from '../../../../src/services/platform/scheduler.js'
import { csvOf, PUBLIC, startTasks, type TaskScene } from '../tasks/task-scene.js'

const BIDS = 2
const DECISION = 20
/** The clock of the scene: epochs of 30 seconds. */
const EPOCHS_PER_DAY = 2880

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
  for (const uuid of [none, emptyForADay]) {
    t.match(await task(uuid), { bid_count: 0, task: { status: 'ActionRequired', miner_id: null } })
  }
  t.match(await task(empty), { bid_count: 0, task: { status: 'Created', miner_id: null } })
})

t.test('a provider that takes offline deals no more does not win', async (t) => {
  const tasks = await startTasks(t)
  const uuid = await tasks.post(PUBLIC, csvOf(1))
  await tasks.scene.network.control.advance(BIDS)
  t.match(await tasks.task(uuid), { bid_count: 3 })
  await setMiner(tasks, { miner_fid: 't01000', offline_deal_available: 'false' })
  await tasks.scene.network.control.advance(DECISION)
  t.match(await tasks.task(uuid), { task: { status: 'Assigned', miner_id: 't01005' } })
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

t.test('the bids of a day are counted by the clock of the network', async (t) => {
  const tasks = await startTasks(t)
  const { control } = tasks.scene.network
  const terms = { ...PUBLIC, max_price: '0.0000005' }
  await setMiner(tasks, { miner_fid: 't01000', auto_bid_task_per_day: '1' })
  const [first, second] = [await tasks.post(terms, csvOf(1)), await tasks.post(terms, csvOf(1))]
  await control.advance(DECISION)
  t.match(await tasks.task(first), { bid_count: 1 })
  t.match(await tasks.task(second), { bid_count: 0 })
  await control.advance(EPOCHS_PER_DAY)
  t.match(await tasks.task(second), { bid_count: 1, task: { status: 'Assigned' } })
})

t.test('a task does not expire before bids can win', (t) => {
  t.equal(expiryOf(100, 1, 30), 100 + EPOCHS_PER_DAY)
  t.equal(expiryOf(100, 1, 86_400), 100 + BIDS + DECISION)
  t.equal(expiryOf(100, 30, 86_400), 130)
  t.end()
})
