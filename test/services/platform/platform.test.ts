import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { type Services, startServices, startServicesInWorker } from '../../../services/index.js'
import { platformLimits } from '../../../services/platform/limits.js'
import { Uploads } from '../../../services/platform/uploads.js'
import { openUserRegistry } from '../../../services/platform/user-registry.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Client } from '../gateway/client.js'
import { type Call, send, startScene } from './platform-client.js'

t.test('each answer is JSON with a status', async (t) => {
  const { call } = await startScene(t)
  const failures: readonly [number, RegExp, string, string, Call?][] = [
    [404, /no such path/, 'GET', '/nothing'],
    [404, /no such path/, 'GET', '/miners/'],
    [405, /takes POST/, 'GET', '/auth/login'],
    [405, /takes GET, POST/, 'DELETE', '/tasks'],
    [400, /percent-encoded/, 'GET', '/miners/%zz'],
    [400, /email is missing/, 'POST', '/auth/login'],
    [400, /password is missing/, 'POST', '/auth/login', { body: { email: 'a@b', password: null } }],
    [400, /not JSON/, 'POST', '/auth/login', { body: '{"email"', headers: { 'content-type': 'application/json' } }],
    [400, /JSON object/, 'POST', '/auth/login', { body: { email: {} } }],
    [400, /no text may have/, 'POST', '/auth/login', { body: { email: 'a\0b' } }],
    [400, /given twice/, 'POST', '/auth/login', { body: new URLSearchParams('email=a&email=b') }],
    [400, /percent-encoded/, 'POST', '/auth/login', { body: 'email=%ff', headers: form }],
    [400, /multipart/, 'POST', '/auth/login', { body: '--b\r\ncontent', headers: multipart }],
    [400, /at most 100 fields/, 'POST', '/auth/login', { body: new URLSearchParams(MANY_FIELDS) }],
    [413, /at most 65536 bytes/, 'POST', '/auth/login', { body: { email: 'a'.repeat(70_000) } }],
    [415, /Send a body of the type/, 'POST', '/auth/login', { body: 'x', headers: { 'content-type': 'text/plain' } }],
    [401, /Sign in first/, 'POST', '/tasks'],
    [401, /not valid/, 'GET', '/tasks', { token: 'abc' }],
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

const MANY_FIELDS = Array.from({ length: 101 }, (_, n) => `field${n}=x`).join('&')

const local = { host: '127.0.0.1', port: 0 }
const startBoth = (data: string): Promise<Services> => startServices({ data, gateway: local, platform: local })

async function tokenOf(services: Services, user: object): Promise<string> {
  const { json } = await send(services.platform?.url ?? '', 'POST', '/auth/login', { body: user })
  return json.auth_token
}

function keyPair({ gateway }: Services, token?: string) {
  return send(gateway.url, 'GET', '/gateway', { ...(token !== undefined && { token }) })
}

t.test('no service takes a body in an unknown transfer coding', async (t) => {
  const payment = { ...local, mode: 'open' } as const
  const services = await startServices({ data: temporaryFolder(t), gateway: local, platform: local, payment })
  t.teardown(() => services.stop())
  const ask = (port: number, path: string) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: gzip, chunked\r\n`
    // Without an end of its own: the answer must close the connection.
    const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\n2\r\n{}\r\n0\r\n\r\n`))
    return text(socket)
  }
  const doors = [
    [services.gateway.port, '/gateway/webrpc'],
    [services.platform?.port ?? 0, '/auth/login'],
    [services.payment?.port ?? 0, '/api/v1/billing/deal/lockpayment'],
  ] as const
  for (const [port, path] of doors) {
    const answer = await ask(port, path)
    t.match(answer, /^HTTP\/1\.1 501 Not Implemented\r\n[\s\S]*only transfer coding[\s\S]*chunked/, path)
    t.match(answer, /\r\nConnection: close\r\n/i)
  }
})

t.test('from a sign-in to the calls of the gateway', async (t) => {
  const data = temporaryFolder(t)
  let services = await startBoth(data)
  t.teardown(() => services.stop())
  const owner = await services.platform?.makeFirstUser()
  t.equal(await services.platform?.makeFirstUser(), undefined)
  const token = await tokenOf(services, { ...owner })
  const { status, json } = await keyPair(services, token)
  t.equal(status, 200)
  t.match(json, { status: 'success', data: { access_url: services.gateway.url } })
  const { accessKey, secretKey } = await services.gateway.credentials()
  t.match(json.data, { access_key: accessKey, secret_key: secretKey }, 'the first user has the first account')

  const stranger = { email: 'stranger@example.com', password: 'a password of theirs' }
  const registry = await openUserRegistry(data)
  await registry.add(stranger.email, stranger.password)
  await registry.close()
  const theirs = await tokenOf(services, stranger)
  const [one, other] = await Promise.all([keyPair(services, theirs), keyPair(services, theirs)])
  t.same(one.json, other.json, 'another user has one account of its own')
  t.not(one.json.data.access_key, accessKey)

  const made = await send(services.platform?.url ?? '', 'POST', '/user/api_keys/jwt', {
    token: theirs,
    body: { key_name: 'x' },
  })
  t.same((await keyPair(services, made.json.auth_token.jwt)).json, one.json, 'also by an API key')

  const { apikey } = made.json.auth_token
  const revoked = await send(services.platform?.url ?? '', 'POST', '/user/api_keys/revoke', {
    token: theirs,
    body: { apikey },
  })
  t.match(revoked.json, { data: { status: 'Revoked' }, message: /key pair .* stays valid: .* web\.SetAuth/ })
  t.equal((await keyPair(services, made.json.auth_token.jwt)).status, 401, 'a revoked key gets no pair')

  const client = new Client(one.json.data.access_url, 'gateway')
  const { access_key: username, secret_key: password } = one.json.data
  client.token = (await client.call('Login', { username, password })).token
  await client.call('MakeBucket', { bucketName: 'theirs' })
  t.equal((await client.put('theirs', 'a b', 'text')).status, 200)
  const { token: urlToken } = await client.call('CreateURLToken')
  t.equal((await client.send(`/gateway/download/theirs/a%20b?token=${urlToken}`)).text, 'text', 'the last step')

  for (const bad of [undefined, 'x', client.token])
    t.match(await keyPair(services, bad), { status: 401, json: { data: null, status: 'fail', message: String } })
  await services.stop()
  services = await startBoth(data)
  t.equal(await services.platform?.makeFirstUser(), undefined)
  t.match((await keyPair(services, token)).json.data, { access_key: accessKey, secret_key: secretKey })
  t.same((await keyPair(services, theirs)).json.data.secret_key, password)
})

t.test('what stands in the way of a start', async (t) => {
  const data = temporaryFolder(t)
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  const { port } = blocker.address() as AddressInfo
  const wanted = {
    code: 'EADDRINUSE',
    service: 'platform',
    message: `Port ${port} of 127.0.0.1 is in use by another program. Stop that one or choose another port.`,
  }
  const blocked = { data, gateway: local, platform: { ...local, port } }
  await t.rejects(startServices(blocked), wanted)
  await t.rejects(startServicesInWorker(blocked), wanted)
  await t.rejects(startServices({ data, gateway: { ...local, port }, platform: local }), {
    code: 'EADDRINUSE',
    service: 'gateway',
  })
  const services = await startBoth(data)
  await t.rejects(startBoth(data), { code: 'DATA_IN_USE' }, 'one instance at a time')
  await services.stop()
})

t.test('uploads take turns', async (t) => {
  const uploads = new Uploads({ ...platformLimits, concurrentUploads: 1, uploadsOfUser: 2, uploadsWaiting: 2 })
  let end = () => {}
  const ended = new Promise<void>((resolve) => (end = resolve))
  let running = 0
  const run = (user: number) =>
    uploads.run(user, async () => {
      t.equal(++running, 1, 'one at a time')
      await ended
      running--
    })
  const first = run(1)
  await setImmediate()
  const second = run(1)
  await t.rejects(run(1), { status: 429, message: /You have 2 uploads already/ })
  const other = run(2)
  await t.rejects(run(3), { status: 503, message: /Too many uploads wait/ })
  end()
  await Promise.all([first, second, other])
  await run(3)
})

t.test('a body must arrive in time', async (t) => {
  let now = 0
  const { platform } = await startScene(t, {}, { monotonicMs: () => now })
  const type = 'Content-Type: application/json\r\nContent-Length: 20\r\nExpect: 100-continue\r\n'
  const socket = connect(platform.port, '127.0.0.1', () =>
    socket.write(`POST /auth/login HTTP/1.1\r\nHost: a\r\n${type}\r\n`),
  )
  await once(socket, 'data')
  now = 5 * 60_000
  socket.write('{')
  t.match(await text(socket), /^HTTP\/1\.1 408 [\s\S]*took more than 300 s/)
})
