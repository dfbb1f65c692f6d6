import t, { type Test } from 'tap'
import { fileSizesOf } from '../../../plugins/task/create/job.js'
import type { Identity } from '../../../src/api/identity.js'
import { startInProcess } from '../../support/server/in-process.js'
import type { Mode } from '../../support/server/modes.js'
import { farFromMidnight } from '../../support/waiting.js'
import { CSV, DEAL_CID, guest, startPlatform, startRecorded, startTaskProxy, type TaskProxy } from './scene.js'

const TASKS = '/-/task/v1/tasks'
const PRIVATE = { TaskName: 'nightly', IsPublic: false, MinerId: 't01000', MaxPrice: '0.0000000001' }

let orders = 0

/** Each order has a client token of its own: two requests with the same signature would be one order. */
async function order(proxy: TaskProxy, body: object | string, headers: Record<string, string> = {}, keys?: Identity) {
  const sent = await proxy.send('POST', `${TASKS}?format=json`, {
    body,
    ...(keys && { keys }),
    headers: { 'idempotency-key': `order-${orders++}`, prefer: 'wait=60', ...headers },
  })
  return { status: sent.status, headers: sent.headers, json: JSON.parse(sent.body) }
}

async function start(t: Test, task: object = {}) {
  const { gateway, platform } = await startPlatform(t)
  const proxy = await startTaskProxy(t, gateway, { platformUrl: platform.url, task })
  const { email: Email, password: Password } = platform.user
  await proxy.ask('POST', '/-/task/v1/session', { Email, Password, Store: true })
  return { gateway, platform, proxy }
}

t.test('a CSV of one endless cell is refused, whatever is in it', async (t) => {
  const row = (cell: string) => `file_source_url,file_size\n"${cell}",5`
  t.same(fileSizesOf(row('a"",'.repeat(100))), [5])
  for (const cell of ['a', '""']) {
    const csv = row(cell.repeat(16 * 1024 * 1024))
    t.throws(() => fileSizesOf(csv), { code: 'InvalidArgument' })
    t.throws(() => fileSizesOf(csv.slice(0, -3)), { code: 'InvalidArgument' })
  }
})

t.test('a task from the request, in every form of body', async (t) => {
  await farFromMidnight()
  const { proxy } = await start(t)
  const json = await order(proxy, { ...PRIVATE, Tags: ['eu', 'backup'], Type: 'verified', File: CSV })
  t.equal(json.status, 200, JSON.stringify(json.json))
  t.match(json.json, {
    JobId: /^j-/,
    TaskUuid: /^[0-9a-f-]{36}$/,
    TaskName: 'nightly',
    Filename: String,
    Message: /created/,
  })
  t.match(await proxy.ask('GET', `${TASKS}/${json.json.TaskUuid}`), {
    Task: {
      TaskName: 'nightly',
      Type: 'verified',
      Tags: ['eu', 'backup'],
      MinerId: 't01000',
      MaxPrice: '0.0000000001',
    },
    Deals: [{ DealCid: DEAL_CID }],
    Source: { JobId: json.json.JobId },
  })
  const xml = `<NewTask><TaskName>x</TaskName><IsPublic>1</IsPublic><BidMode>1</BidMode><Tags><Tag>a</Tag><Tag>b</Tag></Tags></NewTask>`
  t.equal((await order(proxy, xml, { 'content-type': 'application/xml' })).status, 200)
  const boundary = 'frontier'
  const part = (name: string, text: string, file = '') =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${text}\r\n`
  const fields = part('task_name', 'form') + part('is_public', '0') + part('miner_id', 't01001') + part('tags', 'a,b')
  const form = `${fields}${part('max_price', '0')}${part('file', CSV, '; filename="my.csv"')}--${boundary}--\r\n`
  const posted = await order(proxy, form, { 'content-type': `multipart/form-data; boundary=${boundary}` })
  t.match(posted, { status: 200, json: { TaskName: 'form' } })
  t.match(await proxy.ask('GET', `${TASKS}/${posted.json.TaskUuid}`), { Task: { Tags: ['a', 'b'] }, TotalDealCount: 1 })
  const broken = await order(proxy, `--${boundary}\r\nnonsense`, {
    'content-type': `multipart/form-data; boundary=${boundary}`,
  })
  t.match(broken, { status: 400, json: { Code: 'MalformedPOSTRequest' } })
  t.match(await proxy.ask('GET', '/-/task/v1/my-tasks'), { TotalItems: 3 })

  const headers = { 'idempotency-key': 'the-same' }
  const [one, two] = [
    await order(proxy, { ...PRIVATE, File: CSV }, headers),
    await order(proxy, { ...PRIVATE, File: CSV }, headers),
  ]
  t.equal(one.json.TaskUuid, two.json.TaskUuid, 'a repeated token is the same task')
  t.match(await order(proxy, { ...PRIVATE, TaskName: 'other', File: CSV }, headers), {
    json: { Code: 'IdempotencyParameterMismatch' },
  })
  t.match(await proxy.ask('GET', '/-/task/v1/my-tasks'), { TotalItems: 4 })
})

t.test('a task from an object, and the tasks of a bucket', async (t) => {
  await farFromMidnight()
  const { proxy } = await start(t)
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/deals.csv', { body: CSV })
  t.match(await proxy.ask('GET', '/photos?x-task='), { Bucket: 'photos', Tasks: [] })
  const manifest = { ManifestBucket: 'photos', ManifestKey: 'deals.csv' }
  const made = await order(proxy, { ...PRIVATE, ...manifest })
  t.match(made, { status: 200, json: { Bucket: 'photos' } })
  const { TaskUuid, JobId } = made.json
  t.match(await proxy.ask('GET', '/photos?x-task='), {
    Tasks: [{ TaskUuid, JobId, Status: 'Assigned', TotalDealCount: 1, Task: { TaskName: 'nightly' } }],
  })
  t.match(await proxy.ask('GET', `${TASKS}/${TaskUuid}`), { Source: { Bucket: 'photos', JobId } })
  t.match(
    (await proxy.send('GET', '/-?list-type=2&prefix=task/v1/tasks/')).body,
    `<Key>task/v1/tasks/${TaskUuid}</Key>`,
  )

  t.match(await order(proxy, { ...PRIVATE, ...manifest, ManifestKey: 'none' }), { json: { Code: 'NoSuchKey' } })
  t.match(await order(proxy, { ...PRIVATE, ...manifest }, {}, guest), { json: { Code: 'AccessDenied' } })
  t.equal(await proxy.refused('GET', '/photos?x-task=', undefined, guest), 'AccessDenied')
  t.equal(await proxy.refused('GET', '/nowhere?x-task='), 'NoSuchBucket')
  t.match(await proxy.ask('GET', '/-/task/v1/my-tasks'), { TotalItems: 1 })
  await proxy.send('DELETE', '/photos/deals.csv')
  await proxy.send('DELETE', '/photos')
  await proxy.send('PUT', '/photos')
  t.match(await proxy.ask('GET', '/photos?x-task='), { Tasks: [] }, 'a new bucket of the name has none')
})

t.test('what is refused, and costs nothing', async (t) => {
  await farFromMidnight()
  const { proxy } = await start(t)
  const bad: [object, string][] = [
    [{}, 'InvalidArgument'],
    [{ ...PRIVATE, File: CSV, Colour: 'red' }, 'InvalidArgument'],
    [{ ...PRIVATE }, 'DealTermsInvalid'],
    [{ ...PRIVATE, MinerId: undefined, File: CSV }, 'DealTermsInvalid'],
    [{ ...PRIVATE, IsPublic: true, File: CSV }, 'DealTermsInvalid'],
    [{ ...PRIVATE, Tags: ['1', '2', '3', '4', '5', '6'], File: CSV }, 'DealTermsInvalid'],
    [{ ...PRIVATE, MinPrice: '2', MaxPrice: '1', File: CSV }, 'DealTermsInvalid'],
    [{ ...PRIVATE, MaxPrice: undefined, File: CSV }, 'DealTermsInvalid'],
    [{ ...PRIVATE, File: 'file_source_url\nhttp://x/1.car\n' }, 'DealTermsInvalid'],
    [{ ...PRIVATE, File: 'a,b\n1,2\n' }, 'InvalidArgument'],
    [{ ...PRIVATE, File: CSV, ManifestBucket: 'b', ManifestKey: 'k' }, 'DealTermsInvalid'],
    [{ ...PRIVATE, MinerId: 't09999', File: CSV }, 'InvalidArgument'],
    [{ ...PRIVATE, MaxPrice: '1000000', File: CSV }, 'SpendCapReached'],
  ]
  for (const [body, code] of bad) {
    const { json } = await order(proxy, body)
    t.equal(json.Code, code, `${JSON.stringify(body)}: ${json.Message}`)
  }
  t.equal((await order(proxy, { ...PRIVATE, File: CSV }, {}, guest)).json.Code, 'PlatformIdentityRequired')
  t.match(await proxy.ask('GET', '/-/task/v1/my-tasks'), { TotalItems: 0 })
})

t.test('tasks and deals count to the same daily cap', async (t) => {
  await farFromMidnight()
  const { proxy } = await start(t, { maxSpendPerDay: '10' })
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/a', { body: 'x' })
  // 518,400 epochs at 0.000015 are 7.776 fil.
  const deal = { MinerId: 't01000', Price: '0.000015', DurationEpochs: 518400 }
  t.match(await proxy.ask('POST', '/photos/a?x-deal=', deal), { Deal: { MinerId: 't01000' } })
  // A piece of 2048 bytes for 1,512,000 epochs at 1 fil per GiB and epoch is 2.88 fil.
  const dear = await order(proxy, { ...PRIVATE, MaxPrice: '1', File: CSV })
  t.match(dear, { status: 409, json: { Code: 'SpendCapReached', Message: /7\.776/ } })
  t.match(await order(proxy, { ...PRIVATE, MaxPrice: '0.5', File: CSV }), { status: 200 })
  const capped = await order(proxy, { ...PRIVATE, MaxPrice: '0.5', File: CSV })
  t.match(capped, { json: { Code: 'SpendCapReached' } }, 'and the task before')
})

t.test('a task with the token of the request alone', async (t) => {
  await farFromMidnight()
  const { gateway, platform } = await startPlatform(t)
  const proxy = await startTaskProxy(t, gateway, { platformUrl: platform.url })
  const { email: Email, password: Password } = platform.user
  const { AuthToken } = await proxy.ask('POST', '/-/task/v1/session', { Email, Password })
  const own = { 'x-dealgate-platform-authorization': `Bearer ${AuthToken}` }
  t.equal((await order(proxy, { ...PRIVATE, File: CSV })).json.Code, 'PlatformIdentityRequired')
  const made = await order(proxy, { ...PRIVATE, File: CSV }, own)
  t.match(made, { status: 200, json: { TaskUuid: String } })
  t.match(await proxy.ask('GET', `/-/jobs/v1/${made.json.JobId}`), { Status: 'Complete' })
  t.match(await order(proxy, { ...PRIVATE, File: CSV }, { 'x-dealgate-platform-authorization': 'Bearer x.y.z' }), {
    json: { Code: 'UpstreamAuthFailed' },
  })
})

const TERMS = { MinerId: 't01000', Price: '0.0000001', DurationEpochs: 518400 }

async function startJoined(t: Test, mode: Mode) {
  const scene = await startRecorded(t, {}, mode)
  await scene.proxy.send('PUT', '/photos')
  await scene.proxy.send('PUT', '/photos/a', { body: 'some bytes' })
  return scene
}

t.test('expand=task joins the task and its bids to the deals of an answer', async (t) => {
  const { proxy, on } = await startJoined(t, 'full')
  const { Deal } = await proxy.ask('POST', '/photos/a?x-deal=', TERMS)
  const other = await proxy.ask('POST', '/photos/a?x-deal=', { ...TERMS, Price: '0.0000002' })
  await proxy.send('PUT', '/photos/deals.csv', { body: 'file_source_url,file_size\nhttp://x/1.car,5\n' })
  on('POST /tasks', [200, { status: 'success', data: { filename: 'f.csv', uuid: 'u-1' } }])
  const manifest = { ManifestBucket: 'photos', ManifestKey: 'deals.csv' }
  await proxy.ask('POST', TASKS, { TaskName: 'n', IsPublic: true, BidMode: '1', MaxPrice: '0', ...manifest })
  const task = { task_id: 1, task_name: 'n', status: 'Assigned', is_public: 1 }
  const bid = [{ bid_id: 7, price: '0', status: 'New', platform_user_info: { miners: [{ miner_id: 't01000' }] } }]
  const deal = [{ id: 3, deal_cid: Deal.DealCid, status: 'DealActive' }]
  on('GET /tasks/u-1', [200, { status: 'success', data: { task, bid, deal } }])

  const { DealEntry } = await proxy.ask('GET', '/photos/a?expand=task&x-deal=')
  t.match(DealEntry[0], {
    Deal: { DealCid: Deal.DealCid },
    Task: { TaskUuid: 'u-1', Status: 'Assigned', Bids: [{ BidId: 7 }], Deal: { Id: 3, Status: 'DealActive' } },
  })
  t.match(DealEntry[1], { Deal: { DealCid: other.Deal.DealCid } })
  t.notOk('Task' in DealEntry[1], 'a deal of no task has none')
  t.notOk('Task' in (await proxy.ask('GET', '/photos/a?x-deal=')).DealEntry[0])
  t.match((await proxy.send('GET', '/photos/a?expand=task&x-deal=')).body, '<TaskUuid>u-1</TaskUuid>')
  t.match(await proxy.ask('GET', `/-/deal/v1/deals/${Deal.DealCid}?expand=task`), { Task: { TaskUuid: 'u-1' } })
  t.match((await proxy.ask('GET', '/-/deal/v1/deals?expand=task')).Deals[1], { Task: { TaskUuid: 'u-1' } })

  for (const target of [
    '/photos/a?expand=pay&x-deal=',
    '/-/deal/v1/deals?expand=task,all',
    '/-/task/v1/tasks?expand=task',
    '/-/jobs/v1?expand=task',
  ])
    t.equal(await proxy.refused('GET', target), 'InvalidArgument', target)
  t.equal(await proxy.refused('GET', '/photos/a?expand=task&x-deal=', undefined, guest), 'AccessDenied')
  on('GET /tasks/u-1', [404, { status: 'fail', message: 'no' }])
  t.notOk('Task' in (await proxy.ask('GET', '/photos/a?expand=task&x-deal=')).DealEntry[0], 'a task that is gone')
  on('GET /tasks/u-1', 'lost')
  t.equal(await proxy.refused('GET', '/photos/a?expand=task&x-deal='), 'UpstreamUnavailable')
})

t.test('quotes use the list of the platform where the gateway has none, and work without it', async (t) => {
  const { proxy, platform, on } = await startJoined(t, 'legacy')
  const miner = (miner_id: string, price: string) => ({
    ...{ miner_id, price, status: 'Active', min_piece_size: '1B', max_piece_size: '32GiB' },
  })
  on('GET /miners', [200, { status: 'success', data: { miner: [miner('t01', '0.2'), miner('t02', '0.1')] } }])
  const quote = await proxy.ask('POST', '/photos/a?x-deal-quote=', {})
  t.same(
    quote.Candidates.map(({ MinerId }: { MinerId: string }) => MinerId),
    ['t02', 't01'],
  )
  t.match(await proxy.ask('GET', '/-/deal/v1/providers'), { Providers: [{ MinerId: 't01' }, { MinerId: 't02' }] })

  on('GET /miners', 'lost')
  const { gateway } = await startInProcess(t, 'legacy')
  const alone = await startTaskProxy(t, gateway, { platformUrl: platform.url })
  await alone.send('PUT', '/photos')
  await alone.send('PUT', '/photos/a', { body: 'some bytes' })
  t.match(await alone.ask('POST', '/photos/a?x-deal-quote=', {}), { Candidates: [] }, 'a platform that is away')
})
