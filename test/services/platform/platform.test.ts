import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { routes } from '../../../src/services/platform/routes.js'
import { type Call, startScene } from './platform-client.js'

t.test('each answer is JSON with a status', async (t) => {
  const { call } = await startScene(t)
  const failures: readonly [number, RegExp, string, string, Call?][] = [
    [404, /no such path/, 'GET', '/'],
    [404, /no such path/, 'GET', '/nothing'],
    [404, /no such path/, 'GET', '/miners/'],
    [404, /no such path/, 'GET', '//miners'],
    [405, /takes POST/, 'GET', '/auth/login'],
    [405, /takes GET, POST/, 'DELETE', '/tasks'],
    [400, /percent-encoded/, 'GET', '/miners/%zz'],
    [400, /email is missing/, 'POST', '/auth/login'],
    [400, /email is missing/, 'POST', '/auth/login', { body: {} }],
    [400, /password is missing/, 'POST', '/auth/login', { body: { email: 'a@b', password: null } }],
    [400, /not JSON/, 'POST', '/auth/login', { body: '{"email"', headers: { 'content-type': 'application/json' } }],
    [400, /JSON object/, 'POST', '/auth/login', { body: [] }],
    [400, /JSON object/, 'POST', '/auth/login', { body: { email: {} } }],
    [400, /no text may have/, 'POST', '/auth/login', { body: { email: 'a\0b' } }],
    [400, /no text may have/, 'POST', '/auth/login', { body: { email: '\ud800' } }],
    [400, /given twice/, 'POST', '/auth/login', { body: new URLSearchParams('email=a&email=b') }],
    [400, /percent-encoded/, 'POST', '/auth/login', { body: 'email=%f', headers: form }],
    [400, /percent-encoded/, 'POST', '/auth/login', { body: 'email=%ff', headers: form }],
    [400, /multipart/, 'POST', '/auth/login', { body: 'x', headers: { 'content-type': 'multipart/form-data' } }],
    [400, /multipart/, 'POST', '/auth/login', { body: '--b\r\ncontent', headers: multipart }],
    [400, /at most 100 fields/, 'POST', '/auth/login', { body: new URLSearchParams(many(101)) }],
    [413, /at most 65536 bytes/, 'POST', '/auth/login', { body: { email: 'a'.repeat(70_000) } }],
    [415, /Send a body of the type/, 'POST', '/auth/login', { body: 'x', headers: { 'content-type': 'text/plain' } }],
    [401, /Sign in first/, 'POST', '/tasks'],
    [401, /Sign in first/, 'POST', '/miner/info'],
    [401, /not valid/, 'GET', '/tasks', { token: 'abc' }],
    [401, /not valid/, 'GET', '/tasks', { headers: { authorization: 'Basic abc' } }],
  ]
  for (const [status, message, method, path, sent] of failures) {
    const answer = await call(method, path, sent)
    t.match(answer, { status, json: { status: 'fail', message } }, `${method} ${path}: ${message}`)
    t.same(Object.keys(answer.json).sort(), ['message', 'status'])
  }
  t.equal((await call('GET', '/auth/login')).headers.get('allow'), 'POST')
})

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const multipart = { 'content-type': 'multipart/form-data; boundary=b' }

function many(count: number): string {
  return Array.from({ length: count }, (_, n) => `field${n}=x`).join('&')
}

t.test('the three encodings of a body mean the same', async (t) => {
  const { call, made = { email: '', password: '' } } = await startScene(t)
  const parts = new FormData()
  for (const [name, value] of Object.entries(made)) parts.set(name, value)
  for (const body of [{ ...made }, new URLSearchParams({ ...made }), parts]) {
    t.match(await call('POST', '/auth/login', { body }), { status: 200, json: { status: 'success' } })
  }
})

t.test('bytes that are not HTTP are answered in JSON', async (t) => {
  const { platform } = await startScene(t)
  const ask = async (bytes: string) => {
    const socket = connect(platform.port, '127.0.0.1').end(bytes)
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    return { head, body }
  }
  const long = await ask(`POST /auth/login HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)
  t.match(long.head, /^HTTP\/1\.1 431 /)
  const wrong = await ask('POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: a\r\n\r\n')
  t.match(wrong.head, /^HTTP\/1\.1 400 [\s\S]*Content-Type: application\/json/)
})

t.test('each endpoint has a row, of the interface and for API keys', async (t) => {
  t.same(routes.map(({ method, path, access }) => `${method} ${path} ${access}`).sort(), [
    'GET /miner/info/:miner_fid public',
    'GET /miners public',
    'GET /miners/:miner_id public',
    'GET /my_miner/tasks user',
    'GET /offline_deals/:miner_fid user',
    'GET /stats/storage public',
    'GET /tasks optional',
    'GET /tasks/:task_uuid optional',
    'GET /user/api_keys signed-in',
    'POST /auth/login public',
    'POST /heartbeat user',
    'POST /miner/info user',
    'POST /tasks user',
    'POST /user/api_keys/jwt public',
    'POST /user/api_keys/revoke signed-in',
    'PUT /miners/:miner_id/status user',
    'PUT /my_miner/deals/:deal user',
    'PUT /my_miner/tasks/:task_uuid/deals/:deal_cid user',
    'PUT /uuid_tasks/:task_uuid user',
  ])
})
