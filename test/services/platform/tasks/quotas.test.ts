import t from 'tap'
import { csvOf, formOf, PRIVATE, PUBLIC, startTasks } from './task-scene.js'

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
  t.equal((await send(client)).status, 409)
})

t.test('a user has so many open deals', async (t) => {
  const { scene, client, post, put, get } = await startTasks(t, { limits: { maxOpenDeals: 5 } })
  const send = (deals: number, more = {}) =>
    scene.call('POST', '/tasks', { body: formOf({ ...PRIVATE, ...more }, csvOf(deals)), token: client })
  const uuid = 'aaaaaaaa-0000-4000-8000-000000000000'
  t.equal((await send(3, { uuid })).status, 200)
  const message = /^You have 3 open deals, and may have at most 5: this task has 3 more\./
  t.match(await send(3), { status: 409, json: { status: 'fail', message } })
  t.match((await get('/tasks', client)).json, { total_items: 1 }, 'a refused task leaves nothing')
  t.equal((await send(2)).status, 200)
  t.match(await send(1), { status: 409 })
  t.equal((await send(3, { uuid })).status, 200, 'a repeated request is no further task')
  const { deal } = (await get('/offline_deals/t01000', client)).json.data
  for (const [n, status] of ['DealActive', 'ImportFailed'].entries()) {
    await put(`/my_miner/deals/${deal[n].id}`, { status })
  }
  t.match(await send(3), { status: 409 })
  t.equal((await send(2)).status, 200, 'deals that are active or given up are not open')
  await post({ ...PUBLIC, task_name: 'without deals' }, null)
})
