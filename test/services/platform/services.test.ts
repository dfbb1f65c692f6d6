import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { openDatabase } from '../../../src/services/database.js'
import { type Services, startServices, startServicesInWorker } from '../../../src/services/index.js'
import { hashPassword } from '../../../src/services/platform/password.js'
import { migrate } from '../../../src/services/platform/store.js'
import { Users } from '../../../src/services/platform/users.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Client } from '../gateway-client.js'
import { send } from './platform-client.js'

const local = { host: '127.0.0.1', port: 0 }

function startBoth(data: string): Promise<Services> {
  return startServices({ data, gateway: local, platform: local })
}

async function tokenOf(services: Services, user: object): Promise<string> {
  const { json } = await send(services.platform?.url ?? '', 'POST', '/auth/login', { body: user })
  return json.auth_token
}

function keyPair({ gateway }: Services, token?: string) {
  return send(gateway.url, 'GET', '/gateway', { ...(token !== undefined && { token }) })
}

t.test('no service takes a body in an unknown transfer coding', async (t) => {
  const payment = { ...local, variant: 'b' } as const
  const services = await startServices({ data: temporaryFolder(t), gateway: local, platform: local, payment })
  t.teardown(() => services.stop())
  const sent = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'web.ListBuckets',
    email: 'a@b',
    public_key_address: '0x',
  })
  const ask = (port: number, path: string, coding: string) => {
    const body = `${sent.length.toString(16)}\r\n${sent}\r\n0\r\n\r\n`
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: ${coding}\r\n`
    // Without an end of its own: the answer must close the connection.
    const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\n${body}`))
    return text(socket)
  }
  const doors = [
    [services.gateway.port, '/gateway/webrpc'],
    [services.platform?.port ?? 0, '/auth/login'],
    [services.payment?.port ?? 0, '/api/v1/billing/deal/lockpayment'],
  ] as const
  for (const [port, path] of doors) {
    for (const coding of ['gzip, chunked', 'identity, chunked']) {
      const answer = await ask(port, path, coding)
      t.match(
        answer,
        /^HTTP\/1\.1 501 Not Implemented\r\n[\s\S]*only transfer coding[\s\S]*chunked/,
        `${path}: ${coding}`,
      )
      t.match(answer, /\r\nConnection: close\r\n/i)
    }
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
  t.same(Object.keys(json).sort(), ['data', 'status'])
  t.same(Object.keys(json.data).sort(), ['access_key', 'access_url', 'secret_key'])
  t.match(json, { status: 'success', data: { access_url: services.gateway.url } })
  const { accessKey, secretKey } = await services.gateway.credentials()
  t.match(json.data, { access_key: accessKey, secret_key: secretKey }, 'the first user has the first account')

  const stranger = { email: 'stranger@example.com', password: 'a password of theirs' }
  const db = openDatabase(join(data, 'platform', 'platform.db'), '', migrate)
  new Users(db).add(stranger.email, await hashPassword(stranger.password), 0)
  db.close()
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
  t.same((await keyPair(services, theirs)).json, one.json, 'the pair is the same after the revocation')

  const client = new Client(one.json.data.access_url, 'gateway')
  const { access_key: username, secret_key: password } = one.json.data
  client.token = (await client.call('Login', { username, password })).token
  t.same((await client.call('ListBuckets')).buckets, [])
  await client.call('MakeBucket', { bucketName: 'theirs' })
  const uploaded = await client.put('theirs', 'a b', 'text')
  t.equal(uploaded.status, 200)
  const { token: urlToken } = await client.call('CreateURLToken')
  t.equal((await client.send(`/gateway/download/theirs/a%20b?token=${urlToken}`)).text, 'text', 'the last step')

  for (const bad of [undefined, 'x', client.token]) {
    t.match(await keyPair(services, bad), { status: 401, json: { data: null, status: 'fail', message: String } })
  }
  t.equal((await client.send('/gateway', { method: 'POST' })).status, 405)
  await services.stop()
  services = await startBoth(data)
  t.equal(await services.platform?.makeFirstUser(), undefined)
  t.match((await keyPair(services, token)).json.data, { access_key: accessKey, secret_key: secretKey })
  t.same((await keyPair(services, theirs)).json.data.secret_key, password)
})

async function blockedPort(t: Test): Promise<number> {
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  return (blocker.address() as AddressInfo).port
}

t.test('what stands in the way of a start', async (t) => {
  const data = temporaryFolder(t)
  const port = await blockedPort(t)
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

t.test('in a thread of its own', async (t) => {
  const data = temporaryFolder(t)
  const services = await startServicesInWorker({ data, gateway: local, platform: local })
  t.teardown(() => services.stop())
  const token = await tokenOf(services, { ...(await services.platform?.makeFirstUser()) })
  t.equal((await keyPair(services, token)).status, 200)
  const none = await startServices({ data: join(data, 'other'), gateway: local })
  t.teardown(() => none.stop())
  t.equal(none.platform, undefined)
  t.match(await keyPair(none, token), { status: 501, json: { message: /not implemented/ } })
})
