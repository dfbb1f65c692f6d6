import t from 'tap'
import { Blocks } from '../../../src/services/http/body.js'
import { holdRequest } from './held-request.js'
import { startScene } from './platform-client.js'
import { csvOf, formOf, PRIVATE, startTasks } from './tasks/task-scene.js'

const MULTIPART = { 'content-type': 'multipart/form-data; boundary=b' }

function part(head: string): string {
  return `--b\r\n${head}\r\n\r\nx\r\n--b--\r\n`
}

t.test('a part that the parser cannot read is refused', async (t) => {
  const { call } = await startScene(t)
  for (const head of [
    'Content-Disposition: form-data; name="email"\r\nContent-Type: text/plain; charset=nope',
    'Content-Disposition: form-data',
    'Content-Disposition: form-data; filename="a.csv"',
  ]) {
    const answer = await call('POST', '/auth/login', { body: part(head), headers: MULTIPART })
    t.match(answer, { status: 400, json: { status: 'fail', message: /not a multipart form/ } }, head)
  }
})

t.test('an empty body is a form without fields, whatever its type', async (t) => {
  const { call } = await startScene(t)
  for (const headers of [MULTIPART, { 'content-type': 'application/x-www-form-urlencoded' }]) {
    const answer = await call('POST', '/auth/login', { body: '', headers })
    t.match(answer, { status: 400, json: { message: /email is missing/ } }, headers['content-type'])
  }
})

t.test('as many and as large parts as the bounds allow', async (t) => {
  const { call } = await startScene(t)
  const fields = (count: number): FormData => {
    const form = new FormData()
    for (let n = 0; n < count; n++) form.set(`field${n}`, 'x')
    return form
  }
  t.match((await call('POST', '/auth/login', { body: fields(100) })).json, { message: /email is missing/ })
  t.match((await call('POST', '/auth/login', { body: fields(101) })).json, { message: /at most 100 fields/ })
  const csv = csvOf(20)
  const { scene, client } = await startTasks(t, { limits: { maxFileBytes: csv.length } })
  const send = (file: string) => scene.call('POST', '/tasks', { body: formOf(PRIVATE, file), token: client })
  t.equal((await send(csv)).status, 200)
  t.match(await send(`${csv}\n`), { status: 413, json: { message: /too large/ } })
})

t.test('bytes are kept in blocks, however they arrive', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, n) => n % 251))
  for (const size of [1, 7, 65_535, 65_536, 65_537, 200_000]) {
    const blocks = new Blocks()
    for (let at = 0; at < bytes.length; at += size) blocks.add(bytes.subarray(at, at + size))
    t.ok(Buffer.concat(blocks.all()).equals(bytes), `chunks of ${size} bytes`)
    t.equal(blocks.size, bytes.length)
    t.ok(blocks.all().every((block) => block.buffer.byteLength <= 65_536))
    t.ok(blocks.all().length <= 4)
  }
  t.same(new Blocks().all(), [])
})

t.test('uploads take turns', async (t) => {
  const { scene, client, provider } = await startTasks(t, {
    limits: { uploadsAtOnce: 1, uploadsOfUser: 2, uploadsWaiting: 2 },
  })
  const third = await scene.addUser('third@example.com')
  const post = (token: string) =>
    holdRequest(t, `${scene.platform.url}/tasks`, { ...MULTIPART, authorization: `Bearer ${token}` }, 1000)
  const running = post(client)
  t.equal(await running.first, 100)
  // One of the two waits, whichever comes first.
  const refusedOf = async (pair: readonly ReturnType<typeof post>[]) => {
    const n = await Promise.race(pair.map(({ first }, n) => first.then(() => n)))
    return { refused: pair[n] as (typeof pair)[0], waiting: pair[1 - n] as (typeof pair)[0] }
  }
  const own = await refusedOf([post(client), post(client)])
  t.match(await own.refused.answer, { status: 429, retryAfter: /^\d+$/, text: /You have 2 uploads already/ })
  const other = await refusedOf([post(provider), post(third)])
  t.match(await other.refused.answer, { status: 503, retryAfter: /^\d+$/, text: /Too many uploads wait/ })
  running.abort()
  t.equal(await Promise.race([other.waiting.first, own.waiting.first]), 100, 'the next one')
  other.waiting.abort()
  own.waiting.abort()
  t.equal((await scene.call('POST', '/tasks', { body: formOf(PRIVATE), token: client })).status, 200)
})

t.test('a body must arrive in time', async (t) => {
  let now = 0
  const { platform } = await startScene(t, {}, { monotonicMs: () => now })
  const sent = holdRequest(t, `${platform.url}/auth/login`, { 'content-type': 'application/json' }, 20)
  t.equal(await sent.first, 100)
  now = 5 * 60_000
  sent.write('{')
  t.match(await sent.answer, { status: 408, text: /took more than 300 s/ })
})
