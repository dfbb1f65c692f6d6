import t from 'tap'
import { CSV, csvOf, DEAL_CID, formOf, MD5, PRIVATE, PUBLIC, startTasks, URL_OF_CAR } from './task-scene.js'

t.test('a task as its poster and its provider see it', async (t) => {
  const { scene, provider, client, post, get, put, task } = await startTasks(t)
  const posted = await scene.call('POST', '/tasks', { body: formOf({ ...PRIVATE, tags: 'a,b' }), token: client })
  t.match(posted.json, { status: 'success', data: { filename: 'deals.csv' } })
  t.match(posted.json.message, /notification email has been sent to the storage provider/)
  const { uuid } = posted.json.data
  const open = await post({ ...PUBLIC, min_price: '0', max_price: '1', expire_days: '9' })
  await scene.network.control.advance(5)

  const own = (await get('/tasks', client)).json.data.task
  t.match(own, [
    { is_public: 1, miner_id: null, tags: null, min_price: '0', max_price: '1', expire_days: 9 },
    { is_public: 0, miner_id: 't01000', tags: 'a,b', min_price: null, deal_count: 1 },
  ])
  const shown = await task(open)
  t.ok(shown.bid.length > 0)
  t.match(shown, { miner: null, total_deal_count: 1, deal_complete_rate: '0.00', bid_count: shown.bid.length })
  t.match(shown.poster, { contact_info: 'client@example.com', member_since: /^\d+$/, complete_task_count: 0 })
  t.match(shown.deal[0], { miner_id: null, file_source_url: URL_OF_CAR, md5_origin: MD5, start_epoch: 12 })
  const miner = { miner_id: 't01000', status: 'Active' }
  t.match(await task(uuid), { miner, task: { status: 'Assigned' }, average_bid: '0' })

  const mine = await get('/my_miner/tasks', provider)
  t.match(mine.json, { total_items: 1, data: { task: [{ task_name: 'nightly' }], total_items: 1 } })
  const offline = await get('/offline_deals/t01000?deal_status=Created&limit=50&offset=0', provider)
  const [deal] = offline.json.data.deal
  t.match(deal, { miner_id: 1000, deal_cid: DEAL_CID, status: 'Created', note: null, file_path: null })
  const changed = await put(`/my_miner/deals/${deal.id}`, { status: 'Downloading', note: '7' })
  t.match(changed.json, { status: 'Success', data: { deal: { id: deal.id, status: 'Downloading', note: '7' } } })
  const byTask = await put(`/my_miner/tasks/${uuid}/deals/${DEAL_CID}`, { status: 'ImportFailed', note: 'disk' })
  t.match(byTask.json, { status: 'success', data: { deal: { status: 'ImportFailed' }, message: /ImportFailed/ } })
})

t.test('lists: filters, pages, and who sees what', async (t) => {
  const { scene, provider, client, post, get } = await startTasks(t)
  const other = await scene.addUser('other@example.com')
  await post({ ...PRIVATE, task_name: 'Private one' })
  await post({ ...PUBLIC, task_name: 'Alpha', tags: 'eu,backup', max_price: '0.5', min_price: '0.1' }, null)
  await post({ ...PUBLIC, task_name: 'beta', type: 'verified', tags: 'eu', max_price: '0.05' }, null)
  await post({ task_name: 'Übermaß', is_public: '1', bid_mode: '0' }, null)
  const names = async (query: string, token?: string): Promise<string> => {
    const { status, json } = await get(`/tasks?${query}`, token)
    t.equal(status, 200, query)
    t.equal(json.total_items, json.data.total_items)
    return json.data.task.map((task: { task_name: string }) => task.task_name).join()
  }
  t.equal(await names(''), 'Übermaß,beta,Alpha', 'the newest first; private ones are not public')
  t.equal(await names('', client), 'Übermaß,beta,Alpha,Private one')
  t.equal(await names('', other), '', "not another user's")
  const filtered: readonly [string, string][] = [
    ['created_after=99999999999', ''],
    ['status=Completed,CREATED', 'Übermaß,beta,Alpha'],
    ['task_name=ALPH', 'Alpha'],
    ['task_name=%C3%BCberM', 'Übermaß'],
    ['task_name=%25', ''],
    ['type=verified', 'beta'],
    ['tags=eu', 'beta,Alpha'],
    ['tags=eu,backup', 'Alpha'],
    ['max_price=5E-2', 'beta'],
    ['min_price=0.1', 'Alpha'],
    ['tags=eu&type=verified&status=', 'beta'],
    ['limit=1&offset=1', 'beta'],
    ['offset=3', ''],
  ]
  for (const [query, expected] of filtered) t.equal(await names(query), expected, query)
  t.equal(await names('is_public=0', client), 'Private one', 'filters narrow the own list, too')
  t.match((await get('/tasks?tags=eu&limit=1')).json, { total_items: 2, total_task_count: 3 })
  const long = `status=${'a,'.repeat(20)}a`
  for (const query of ['has_miner=2', 'type=odd', 'max_price=a', 'limit=0', 'offset=99999999999999999999', long]) {
    const [name = ''] = query.split('=')
    t.match(await get(`/tasks?${query}`), { status: 400, json: { message: new RegExp(name) } }, query)
  }
  t.match((await get('/my_miner/tasks', provider)).json, { total_items: 1 })
})

t.test('who reads a private task', async (t) => {
  const { scene, provider, client, post, get } = await startTasks(t)
  const other = await scene.addUser('other@example.com')
  const uuid = await post()
  const open = await post(PUBLIC)
  for (const token of [client, provider]) t.equal((await get(`/tasks/${uuid}`, token)).status, 200)
  for (const token of [other, undefined]) t.equal((await get(`/tasks/${uuid}`, token)).status, 404)
  t.equal((await get(`/tasks/${open}`)).status, 200)
  t.equal((await get(`/tasks/${open.toUpperCase()}`)).status, 200)
  t.equal((await get('/tasks/2')).status, 200, 'by its number, which lists show')
  t.equal((await get('/tasks/1')).status, 404)
  t.match((await get('/offline_deals/t01000', other)).json.data.deal, [])
  t.equal((await get('/offline_deals/t01000', client)).json.data.deal.length, 1)
  t.equal((await get('/offline_deals/t01000', provider)).json.data.deal.length, 1)
  t.equal((await get('/offline_deals/t01000')).status, 401)
  t.match(await get('/offline_deals/t09999', provider), { status: 404, json: { message: 'Miner Not found' } })
})

t.test('deals in pages', async (t) => {
  const { provider, post, get } = await startTasks(t)
  const uuid = await post(PRIVATE, csvOf(25))
  const ids = async (path: string): Promise<number[]> => {
    const { json } = await get(path, provider)
    return json.data.deal.map(({ id }: { id: number }) => id)
  }
  const all = await ids('/offline_deals/t01000?limit=100')
  t.equal(all.length, 25)
  t.same(await ids('/offline_deals/t01000'), all.slice(0, 20), '20 unless the request says otherwise')
  t.same(await ids('/offline_deals/t01000?limit=10&offset=20'), all.slice(20))
  t.same(await ids('/offline_deals/t01000?deal_status=created&limit=1'), all.slice(0, 1))
  t.same(await ids('/offline_deals/t01000?deal_status=DealActive'), [])
  t.same(await ids(`/tasks/${uuid}?limit=5&offset=3`), all.slice(3, 8))
})

t.test('what a provider may write, and to which deals', async (t) => {
  const { scene, provider, client, post, get, put, task } = await startTasks(t)
  const other = await scene.addUser('other@example.com')
  const uuid = await post()
  const open = await post(PUBLIC, csvOf(1))
  const before = { private: await task(uuid), open: await task(open) }
  const [{ id }] = before.private.deal
  const [{ id: unassigned }] = before.open.deal
  const refused: readonly [number, string, Record<string, string>, string?][] = [
    [403, `/my_miner/deals/${id}`, { status: 'DealActive' }, client],
    [403, `/my_miner/tasks/${uuid}/deals/${DEAL_CID}`, { status: 'DealActive' }, client],
    [403, `/my_miner/deals/${unassigned}`, { status: 'DealActive' }],
    [404, `/my_miner/deals/${id}`, { status: 'DealActive' }, other],
    [404, `/my_miner/tasks/${uuid}/deals/${DEAL_CID}`, { status: 'DealActive' }, other],
    [404, '/my_miner/deals/99999999999999999999', { status: 'DealActive' }],
    [404, `/my_miner/tasks/${open}/deals/${DEAL_CID}`, { status: 'DealActive' }],
    [400, `/my_miner/deals/${id}`, { note: 'no status' }],
    [400, `/my_miner/deals/${id}`, { status: 'two words' }],
    [400, `/my_miner/deals/${id}`, { status: 'Downloaded', file_size: '1e3' }],
  ]
  for (const [status, path, form, token] of refused) {
    t.match(await put(path, form, token), { status, json: { status: 'fail' } }, `${path} ${JSON.stringify(form)}`)
  }
  t.same({ private: await task(uuid), open: await task(open) }, before, 'nothing has changed')

  const full = { status: 'Downloaded', note: 'x', file_path: '/d/1.car', file_size: '2000', cost: '0.1' }
  t.match((await put(`/my_miner/deals/${id}`, full)).json.data.deal, { status: 'Downloaded', file_path: '/d/1.car' })
  await put(`/my_miner/deals/${id}`, { status: 'Anything' })
  t.match((await get('/offline_deals/t01000', provider)).json.data.deal, [
    { status: 'Anything', note: 'x', file_path: '/d/1.car' },
  ])
  await post(PRIVATE, CSV)
  const ambiguous = await put(`/my_miner/deals/${DEAL_CID}`, { status: 'A' })
  t.match(ambiguous, { status: 409, json: { message: /by its number/ } })
})

t.test('strangers learn neither who posts a public task nor where its CARs are', async (t) => {
  const { scene, provider, client, post, get, put } = await startTasks(t)
  const other = await scene.addUser('other@example.com')
  const uuid = await post(PUBLIC)
  for (const token of [client, provider]) {
    const { data } = (await get(`/tasks/${uuid}`, token)).json
    t.match(data, { poster: { contact_info: 'client@example.com' }, deal: [{ file_source_url: URL_OF_CAR }] })
  }
  for (const token of [other, undefined]) {
    const { json } = await get(`/tasks/${uuid}`, token)
    t.match(json.data, { poster: { contact_info: '' }, deal: [{ file_source_url: '' }] })
  }
  // The bids come after two epochs, the decision after 20.
  await scene.network.control.advance(2)
  await get('/tasks')
  await scene.network.control.advance(20)
  const { miner } = (await get(`/tasks/${uuid}`, client)).json.data
  const url = async (token: string) =>
    (await get(`/offline_deals/${miner.miner_id}`, token)).json.data.deal[0].file_source_url
  t.same([await url(client), await url(provider), await url(other)], [URL_OF_CAR, URL_OF_CAR, ''])
  t.match((await put('/my_miner/deals/1', { status: 'Downloading' })).json.data.deal, { file_source_url: URL_OF_CAR })
})

t.test('bad requests post nothing', async (t) => {
  const { scene, client, provider, get } = await startTasks(t)
  const uuid = 'aaaaaaaa-0000-4000-8000-000000000000'
  const otherProvider = `file_source_url,miner_id\n${URL_OF_CAR},t01001\n`
  const withUuid = (id: string) => CSV.replace('\n,', `\n${id},`)
  const refused: readonly [number, RegExp, FormData | object][] = [
    [400, /task_name is missing/, {}],
    [400, /file is missing/, formOf(PRIVATE, null)],
    [400, /no storage provider t09999/, formOf({ ...PRIVATE, miner_id: 't09999' })],
    [400, /takes no offline deals/, formOf({ ...PRIVATE, miner_id: 't01002' })],
    [400, /Row 1500, column md5/, formOf(PRIVATE, csvOf(2000).replace(`?1498,${MD5}`, '?1498,x'))],
    [400, /column miner_id: it contradicts the field/, formOf(PRIVATE, otherProvider)],
    [400, /contradicts is_public = 1/, formOf(PUBLIC, otherProvider)],
    [400, /contradicts the field uuid/, formOf({ ...PRIVATE, uuid }, withUuid(uuid.replaceAll('a', 'b')))],
  ]
  for (const [status, message, body] of refused) {
    const answer = await scene.call('POST', '/tasks', { body, token: client })
    t.match(answer, { status, json: { status: 'fail', message } }, String(message))
  }
  const otherFile = formOf(PRIVATE)
  otherFile.set('car', new Blob(['x']), 'x.car')
  t.match((await scene.call('POST', '/tasks', { body: otherFile, token: client })).json.message, /send the CSV as file/)
  const asText = formOf(PUBLIC, null)
  asText.set('file', CSV)
  t.match((await scene.call('POST', '/tasks', { body: asText, token: client })).json.message, /^file is a text/)
  t.equal((await scene.call('POST', '/tasks', { body: formOf(PRIVATE) })).status, 401)
  t.match((await get('/tasks', client)).json, { total_items: 0, data: { task: [] } })
  t.match((await get('/offline_deals/t01000', provider)).json.data.deal, [])
})

t.test('a CSV that is too large is refused', async (t) => {
  const { scene, client, get } = await startTasks(t, { limits: { maxFileBytes: 2000 } })
  const send = (csv: string) => scene.call('POST', '/tasks', { body: formOf(PRIVATE, csv), token: client })
  t.equal((await send(csvOf(10))).status, 200)
  t.match(await send(csvOf(40)), { status: 413, json: { status: 'fail', message: /too large/ } })
  t.match((await get('/tasks', client)).json, { total_items: 1 })
})

t.test('a repeated request with a UUID is one task', async (t) => {
  const { scene, client, provider, get } = await startTasks(t)
  const uuid = 'aaaaaaaa-0000-4000-8000-000000000000'
  const csv = `uuid,file_source_url\n${uuid},${URL_OF_CAR}\n`
  const send = (terms: Record<string, string>, token = client) =>
    scene.call('POST', '/tasks', { body: formOf(terms, csv), token })
  const answers = await Promise.all([send(PRIVATE), send(PRIVATE), send(PRIVATE)])
  answers.push(await send(PRIVATE))
  for (const answer of answers) t.match(answer, { status: 200, json: { data: { uuid } } })
  t.match(await send({ ...PRIVATE, task_name: 'other' }), { status: 409 })
  t.match(await send(PRIVATE, provider), { status: 409 }, "another user's")
  t.match((await get('/tasks', client)).json, { total_items: 1 })
  t.equal((await get('/offline_deals/t01000', client)).json.data.deal.length, 1)
})

/** As clients older than bid modes post a task: none of them is named. */
const OPEN = { task_name: 'by hand', is_public: '1', type: 'verified', miner_id: '' }
const MINER = { miner_fid: 't01000' }

/** The CSV of such a client, once it has sent its deals. */
function sentBy(uuid: string, deals = 1): string {
  const row = (n: number) => `${uuid},t01000,${n === 0 ? DEAL_CID : ''},${URL_OF_CAR}?${n},${MD5},12\n`
  return `uuid,miner_id,deal_cid,file_source_url,md5,start_epoch\n${Array.from({ length: deals }, (_, n) => row(n)).join('')}`
}

t.test('a public task without a bid mode waits for its poster, who names the provider and the deals', async (t) => {
  const { scene, client, post, task } = await startTasks(t)
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
    [403, /Only the poster/, formOf(MINER, own), other],
    [404, /no such task/, formOf(MINER, own), other, await post(PRIVATE)],
    [400, /miner_fid is missing/, formOf({}, own)],
    [400, /miner_fid: there is no storage provider/, formOf({ miner_fid: 't09999' }, own)],
    [400, /file is missing/, formOf(MINER, null), client, await post(OPEN, null)],
    [400, /column uuid/, formOf(MINER, own.replace(uuid, 'aaaaaaaa-0000-4000-8000-000000000000'))],
    [400, /column miner_id/, formOf({ miner_fid: 't01001' }, own)],
  ]
  for (const [status, message, form, token, id] of refused)
    t.match(await put(form, token, id), { status, json: { status: 'fail', message } }, String(message))
  t.same(await task(uuid), before, 'nothing has changed')

  const done = await put(formOf(MINER, own))
  t.match(done, { status: 200, json: { status: 'success', data: { uuid, filename: 'deals.csv' } } })
  const after = await task(uuid)
  t.match(after, {
    task: { status: 'Assigned', miner_id: 't01000' },
    total_deal_count: 1,
    deal: [{ deal_cid: DEAL_CID }],
  })
  for (const { username, status } of after.bid) t.equal(status, username === 't01000' ? 'Won' : 'Lost', username)
  t.match(await put(formOf(MINER, own)), { status: 200, json: { data: { uuid } } }, 'a repeated request')
  t.match(await put(formOf(MINER, sentBy(uuid, 2))), { status: 409, json: { message: /provider t01000 already/ } })
  t.equal((await task(uuid)).total_deal_count, 1)

  const kept = await post(OPEN, csvOf(2))
  t.equal((await put(formOf(MINER, null), client, kept)).status, 200, 'without a CSV')
  t.match(await task(kept), { task: { status: 'Assigned', miner_id: 't01000' }, total_deal_count: 2 })
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
