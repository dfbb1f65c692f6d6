import t, { type Test } from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import type { Scripted } from './recorded-platform.js'
import { backUp, CSV, startPlatform, startRecorded, startTaskProxy, type TaskProxy } from './scene.js'

const TASK = { TaskName: 'nightly', IsPublic: false, MinerId: 'f01', MaxPrice: '0', File: CSV }

let orders = 0

async function start(t: Test, task: object = {}) {
  const scene = await startRecorded(t, task)
  const { platform, proxy } = scene
  const order = async (wait = 60) => {
    const headers = { 'idempotency-key': `lost-${orders++}`, prefer: `wait=${wait}` }
    const { status, body } = await proxy.send('POST', '/-/task/v1/tasks', { body: TASK, headers })
    return { status, json: JSON.parse(body) }
  }
  const posts = () => platform.requests.filter(({ method, target }) => method === 'POST' && target === '/tasks')
  return { ...scene, order, posts }
}

t.test('the form of a new task, byte by byte', async (t) => {
  const { on, order, posts } = await start(t)
  on('POST /tasks', [200, { status: 'Success', data: { filename: 'f.csv', uuid: 'their-own' }, message: 'made' }])
  t.match(await order(), { status: 200, json: { TaskUuid: 'their-own', Filename: 'f.csv', Message: 'made' } })
  const [post] = posts()
  t.match(post, { authorization: 'Bearer token', type: /^multipart\/form-data; boundary=/ })
  const fields = [
    ...(post?.body ?? '').matchAll(/name="(\w+)"(?:; filename="([^"]*)")?[\s\S]*?\r\n\r\n([\s\S]*?)\r\n--/g),
  ]
  t.same(
    fields.map(([, name, , text]) => [name, name === 'uuid' ? 'chosen' : text]),
    [
      ['task_name', 'nightly'],
      ['is_public', '0'],
      ['miner_id', 'f01'],
      ['max_price', '0'],
      ['duration', '1512000'],
      ['uuid', 'chosen'],
      ['file', CSV],
    ],
  )
})

t.test('answers that say nothing: the task is found by its UUID, and nothing is posted twice', async (t) => {
  const { on, order, posts, job, platform } = await start(t)
  on('GET /tasks', [500, {}])
  const answers: Scripted[] = ['lost', [500, 'oops'], [200, '<!doctype html>']]
  for (const [i, answer] of answers.entries()) {
    on('POST /tasks', answer)
    const { status, json } = await order(0)
    t.equal(status, 202)
    await job(json.JobId, 'Unknown')
    t.equal(posts().length, i + 1)
    const uuid = /name="uuid"\r\n\r\n([^\r]*)/.exec(posts()[i]?.body ?? '')?.[1] ?? ''
    const task = { task_id: 5 + i, task_name: 'nightly', task_file_name: 'x.csv' }
    platform.answers.set(`GET /tasks/${uuid}`, [[200, { status: 'success', data: { task, bid: [], deal: [] } }]])
    t.match((await job(json.JobId, 'Complete')).Result, { TaskUuid: uuid, Filename: 'x.csv' })
  }
  t.equal(posts().length, answers.length)
})

t.test('a platform that chooses UUIDs itself: the task is found by name and time', async (t) => {
  const { on, order, posts, job, proxy, platform } = await start(t)
  on('POST /tasks', 'lost')
  const now = String(Math.floor(Date.now() / 1000))
  const listed = (...tasks: object[]) => on('GET /tasks', [200, { status: 'success', data: { task: tasks } }])
  const others = [
    { task_id: 1, task_name: 'nightly', created_on: '1613713470' },
    { task_id: 2, task_name: 'weekly', created_on: now },
    { task_id: 3, task_name: 'nightly', created_on: now, is_public: 1 },
  ]
  listed(
    ...others,
    { task_id: 4, task_name: 'nightly', created_on: now },
    { task_id: 5, task_name: 'nightly', created_on: now },
  )
  const { json } = await order(0)
  await job(json.JobId, 'Unknown')
  const searched = () => platform.requests.filter(({ target }) => target.startsWith('/tasks?')).length
  await until('the list is searched', () => searched() > 0)
  t.match(await proxy.ask('GET', `/-/jobs/v1/${json.JobId}`), { Status: 'Unknown' }, 'two may be it')
  listed(...others, { task_id: 4, task_name: 'nightly', created_on: now, task_file_name: 'y.csv' })
  t.match((await job(json.JobId, 'Complete')).Result, { TaskId: 4, Filename: 'y.csv' })
  t.equal(posts().length, 1)
})

t.test('a task that the platform never lists counts as not created, and is posted again', async (t) => {
  const { on, order, posts, job, later } = await start(t, { reconcileAfterSeconds: 60 })
  on('POST /tasks', 'lost', [200, { status: 'success', data: { filename: 'f.csv', uuid: 'u' } }])
  on('GET /tasks', [200, { status: 'success', data: [] }])
  const { json } = await order(0)
  await job(json.JobId, 'Unknown')
  t.equal(posts().length, 1)
  later(61)
  t.match((await job(json.JobId, 'Complete')).Result, { TaskUuid: 'u' })
  t.equal(posts().length, 2)
})

t.test('a refusal is one, and a new token is got once', async (t) => {
  const { on, order, posts } = await start(t)
  on('POST /tasks', [409, { status: 'fail', message: 'too many open tasks' }])
  t.match(await order(), { status: 409, json: { Code: 'PlatformRefused', Message: /too many open tasks/ } })
  on('POST /tasks', [429, { status: 'fail', message: 'busy' }])
  t.match(await order(), { status: 503, json: { Code: 'SlowDown' } })
  const before = posts().length
  on('POST /auth/login', [200, { status: 'success', auth_token: 'second' }])
  on('POST /tasks', [401, { status: 'fail' }], [200, { status: 'success', data: { filename: 'f', uuid: 'u' } }])
  t.match(await order(), { status: 200 })
  t.same(
    posts()
      .slice(before)
      .map(({ authorization }) => authorization),
    ['Bearer token', 'Bearer second'],
  )
})

// A state store that is restored from a backup lacks the jobs of later requests. The client repeats such a request.

t.test('a client token posts one task, also when its job is lost', async (t) => {
  const { gateway, platform } = await startPlatform(t)
  const data = temporaryFolder(t)
  const start = () => startTaskProxy(t, gateway, { platformUrl: platform.url, data })
  const { email: Email, password: Password } = platform.user
  const order = async (proxy: TaskProxy, token: string, other: object = {}) => {
    const { status, body } = await proxy.send('POST', '/-/task/v1/tasks', {
      body: { TaskName: 'nightly', IsPublic: true, BidMode: 0, MaxPrice: '0', File: CSV, ...other },
      headers: { 'x-amz-client-token': token, prefer: 'wait=60' },
    })
    return { status, body, uuid: JSON.parse(body).TaskUuid as string | undefined }
  }
  const first = await start()
  await first.ask('POST', '/-/task/v1/session', { Email, Password, Store: true })
  await first.close()
  const restore = backUp(t, data)
  const second = await start()
  const posted = await order(second, 'one')
  t.equal(posted.status, 200, posted.body)
  t.ok(posted.uuid)
  const restored = async (proxy: TaskProxy) => {
    await proxy.close()
    return restore(start, (noticing) => order(noticing, 'one'))
  }
  let third = second
  for (const other of [
    { TaskName: 'weekly' },
    { IsPublic: false, MinerId: 't01000' },
    { MaxPrice: '0.1' },
    { File: `${CSV}${CSV.split('\n')[1]}\n` },
  ]) {
    third = await restored(third)
    const refused = await order(third, 'one', other)
    t.match(refused, { status: 409, body: /IdempotencyParameterMismatch/ }, Object.keys(other).join())
  }
  third = await restored(third)
  const again = await order(third, 'one')
  t.equal(again.status, 200, again.body)
  t.equal(again.uuid, posted.uuid)
  t.equal((await third.ask('GET', '/-/task/v1/my-tasks')).TotalItems, 1)
  t.not((await order(third, 'two')).uuid, posted.uuid)
  t.equal((await third.ask('GET', '/-/task/v1/my-tasks')).TotalItems, 2)
})
