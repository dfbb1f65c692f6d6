import { definePlugin, type PluginHost } from 'dealgate'
import t, { type Test } from 'tap'
import { MadeTasks } from '../../../plugins/task/create/made-tasks.js'
import task from '../../../plugins/task/index.js'
import { startServices } from '../../../src/services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { startInProcess } from '../../support/server/in-process.js'
import { quirksOf } from '../../support/server/modes.js'
import { farFromMidnight } from '../../support/waiting.js'
import { lint } from '../describe/openapi/lint.js'
import { startRecordedPlatform } from './recorded-platform.js'
import { guest, startTaskProxy } from './scene.js'

const TERMS = { MinerId: 't01000', Price: '0.0000001', DurationEpochs: 518400 }

async function start(t: Test, mode: 'full' | 'legacy') {
  await farFromMidnight()
  const services = await startServices({
    data: temporaryFolder(t),
    gateway: { host: '127.0.0.1', port: 0, quirks: quirksOf(mode) },
    network: { control: true, epochSeconds: 86_400 },
  })
  t.teardown(() => services.stop())
  const gateway = { url: services.gateway.url, account: await services.gateway.credentials() }
  const platform = await startRecordedPlatform(t)
  const proxy = await startTaskProxy(t, gateway, { platformUrl: platform.url })
  platform.answers.set('POST /auth/login', [[200, { status: 'success', auth_token: 'token' }]])
  await proxy.ask('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'p', Store: true })
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/a', { body: 'some bytes' })
  return { proxy, platform }
}

t.test('expand=task joins the task and its bids to the deals of an answer', async (t) => {
  const { proxy, platform } = await start(t, 'full')
  const { Deal } = await proxy.ask('POST', '/photos/a?x-deal=', TERMS)
  const other = await proxy.ask('POST', '/photos/a?x-deal=', { ...TERMS, Price: '0.0000002' })
  await proxy.send('PUT', '/photos/deals.csv', { body: 'file_source_url,file_size\nhttp://x/1.car,5\n' })
  platform.answers.set('POST /tasks', [[200, { status: 'success', data: { filename: 'f.csv', uuid: 'u-1' } }]])
  const order = {
    TaskName: 'n',
    IsPublic: true,
    BidMode: '1',
    MaxPrice: '0',
    ManifestBucket: 'photos',
    ManifestKey: 'deals.csv',
  }
  await proxy.ask('POST', '/-/task/v1/tasks', order)
  const task = { task_id: 1, task_name: 'n', status: 'Assigned', is_public: 1 }
  const bid = [{ bid_id: 7, price: '0', status: 'New', platform_user_info: { miners: [{ miner_id: 't01000' }] } }]
  const deal = [{ id: 3, deal_cid: Deal.DealCid, status: 'DealActive' }]
  platform.answers.set('GET /tasks/u-1', [[200, { status: 'success', data: { task, bid, deal } }]])

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
  platform.answers.set('GET /tasks/u-1', [[404, { status: 'fail', message: 'no' }]])
  t.notOk('Task' in (await proxy.ask('GET', '/photos/a?expand=task&x-deal=')).DealEntry[0], 'a task that is gone')
  platform.answers.set('GET /tasks/u-1', ['lost'])
  t.equal(await proxy.refused('GET', '/photos/a?expand=task&x-deal='), 'UpstreamUnavailable')
})

t.test('expand is described where it has values, and nowhere else', async (t) => {
  const { proxy } = await start(t, 'full')
  const { paths, ...document } = await proxy.ask('GET', '/-/openapi.json')
  t.same(await lint({ ...document, paths }), [])
  const { parameters, responses } = paths['/-/deal/v1/deals/{DealCid}'].get
  t.match(
    parameters.find((one: { name: string }) => one.name === 'expand'),
    { in: 'query', required: false, description: /^Values, separated by commas. task: The task by which/ },
  )
  const ofDeal = responses[200].content['application/json'].schema
  t.match(ofDeal.properties.Task.properties, { TaskUuid: { type: 'string' }, Bids: { type: 'array' } })
  t.notOk(ofDeal.required.includes('Task'))
  const list = paths['/{Bucket}/{Key}#x-deal'].get.responses[200].content['application/json'].schema
  t.match(list.properties.DealEntry.items.properties, { Deal: Object, Task: { properties: { Status: Object } } })
  const names = (path: string) => (paths[path].get.parameters ?? []).map(({ name }: { name: string }) => name)
  t.notOk(names('/-/task/v1/tasks').includes('expand'))

  const { operations, shapes } = await proxy.ask('GET', '/-/aws-model.json')
  t.match(shapes[operations.ListObjectDeals.input.shape].members.Expand, {
    location: 'querystring',
    locationName: 'expand',
  })
  t.ok(shapes[operations.GetDeal.output.shape].members.Task)
  t.notOk('Expand' in shapes[operations.ListPublicTasks.input.shape].members)
})

t.test('quotes use the list of the platform where the gateway has none, and work without it', async (t) => {
  const { proxy, platform } = await start(t, 'legacy')
  const miner = (id: string, price: string) => ({
    miner_id: id,
    price,
    status: 'Active',
    min_piece_size: '1B',
    max_piece_size: '32GiB',
  })
  platform.answers.set('GET /miners', [
    [200, { status: 'success', data: { miner: [miner('t01', '0.2'), miner('t02', '0.1')] } }],
  ])
  const quote = await proxy.ask('POST', '/photos/a?x-deal-quote=', {})
  t.same(
    quote.Candidates.map(({ MinerId }: { MinerId: string }) => MinerId),
    ['t02', 't01'],
  )
  t.match(await proxy.ask('GET', '/-/deal/v1/providers'), { Providers: [{ MinerId: 't01' }, { MinerId: 't02' }] })

  platform.answers.set('GET /miners', ['lost'])
  const { gateway } = await startInProcess(t, 'legacy')
  const alone = await startTaskProxy(t, gateway, { platformUrl: platform.url })
  await alone.send('PUT', '/photos')
  await alone.send('PUT', '/photos/a', { body: 'some bytes' })
  t.match(await alone.ask('POST', '/photos/a?x-deal-quote=', {}), { Candidates: [] }, 'a platform that is away')
})

t.test('a plugin adds tasks to a bucket, also one without a UUID', async (t) => {
  const { gateway } = await startInProcess(t, 'full')
  let host: PluginHost | undefined
  const probe = definePlugin({
    name: 'probe',
    create(_, given) {
      host = given
      return { operations: [] }
    },
  })
  const proxy = await startTaskProxy(t, gateway, { proxy: { plugins: [task({}), probe()] } })
  await proxy.send('PUT', '/photos')
  const made = { jobId: 'j-1', bucket: 'photos', name: 'n', file: 'f.csv', uuid: '', accessKeyId: '' }
  for (let times = 0; times < 2; times++) await host?.offered.tasks?.remember(made)
  t.same((await proxy.ask('GET', '/photos?x-task=')).Tasks, [{ JobId: 'j-1', TaskName: 'n', Status: 'Unseen' }])
})

t.test('a task that could not be added to its bucket is not on record, so that it is added again', async (t) => {
  const { gateway } = await startInProcess(t, 'full')
  let host: PluginHost | undefined
  const probe = definePlugin({
    name: 'probe',
    create(_, given) {
      host = given
      return { operations: [] }
    },
  })
  await startTaskProxy(t, gateway, { proxy: { plugins: [probe()] } })
  if (!host) throw new Error('the probe was not started')
  const task = { jobId: 'j-1', bucket: 'photos', name: 'n', file: 'f.csv', uuid: 'u-1', accessKeyId: '', made: 0 }
  const dying = {
    state: host.state,
    settings: {
      latest: async () => undefined,
      set: async () => {
        throw new Error('the server died')
      },
    },
  } as unknown as PluginHost
  const made = new MadeTasks(dying)
  await t.rejects(made.remember(task), { message: 'the server died' })
  t.equal(await made.of('j-1'), undefined)
})
