import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@keyv/redis'
import pg from 'pg'
import t, { type Test } from 'tap'
import deal from '../../plugins/deal/index.js'
import { createProxy } from '../../src/server/create-proxy.js'
import { serve } from '../../src/server/serve.js'
import { startServices } from '../../src/services/index.js'
import { acceptLoss, examineStore } from '../../src/state/open-backend.js'
import { openState } from '../../src/state/open-state.js'
import { temporaryFolder } from '../support/content/folders.js'
import { publicRead } from '../support/content/policies.js'
import { Between } from '../support/gateway/between.js'
import { runCli } from '../support/server/cli.js'
import { keptLog } from '../support/server/kept-log.js'
import { quirksOf } from '../support/server/modes.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'
import { postgres, redis } from './servers.js'

// Stores of records that come back empty, older or without a part of what they held, also to a proxy with a new data
// folder: then only the gateway knows that there were records.

const KEYS = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
const { log } = keptLog()

const block =
  '<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy></PublicAccessBlockConfiguration>'
const policy = publicRead('photos')

async function startScene(t: Test, mode: 'full' | 'legacy' = 'full') {
  const folder = temporaryFolder(t)
  const services = await startServices({
    data: join(folder, 'services'),
    gateway: { host: '127.0.0.1', port: 0, quirks: quirksOf(mode) },
  })
  t.teardown(() => services.stop())
  const gateway = await Between.start(t, { url: services.gateway.url, ...(await services.gateway.credentials()) })

  /** A proxy with a data folder of that name, and its state in the folder where no `stateUrl` is given. */
  async function start(name: string, stateUrl?: string) {
    const { log, lines } = keptLog()
    const data = join(folder, name)
    const proxy = await createProxy({
      gateway: { url: gateway.url, account: { accessKey: gateway.accessKey, secretKey: gateway.secretKey } },
      identities: [KEYS],
      data,
      ...(stateUrl !== undefined && { stateUrl }),
      plugins: [deal({ statusIntervalSeconds: 86_400 })],
      log,
      accessLog: false,
      lifecycleIntervalMs: 0,
    })
    const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
    let closed: Promise<void> | undefined
    const close = () => {
      closed ??= serving.close(0).then(() => proxy.close())
      return closed
    }
    t.teardown(close)
    const send = (method: string, path: string, more: object = {}) =>
      signedRequest(serving.url, KEYS, { method, path, ...more })
    return {
      data,
      lines,
      close,
      send,
      makeDeal: (token: string) =>
        send('POST', '/photos/a.zip', {
          query: { 'x-deal': '', format: 'json' },
          headers: { 'content-type': 'application/json', 'x-amz-client-token': token },
          body: JSON.stringify({ MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518400 }),
        }),
      putPolicy: () => send('PUT', '/photos', { query: { policy: '' }, body: policy }),
      async ready() {
        const answer = await fetch(`${serving.url}/-/ready`)
        return { ...((await answer.json()) as { problem?: string }), status: answer.status }
      },
    }
  }
  const deals = () => gateway.count('POST', '/gateway/deal')
  return { folder, gateway, start, deals }
}

type Started = Awaited<ReturnType<Awaited<ReturnType<typeof startScene>>['start']>>

async function furnish(t: Test, proxy: Started) {
  t.equal((await proxy.send('PUT', '/photos')).status, 200)
  t.equal((await proxy.send('PUT', '/photos/a.zip', { body: 'archived' })).status, 200)
  t.equal((await proxy.send('PUT', '/photos', { query: { publicAccessBlock: '' }, body: block })).status, 200)
  await works(t, proxy, 'token')
  t.notOk(proxy.lines.some(({ msg }) => /state accept/.test(msg)))
}

async function works(t: Test, proxy: Started, token: string) {
  const made = await proxy.makeDeal(token)
  t.ok(made.status < 300, made.body)
  t.notMatch(await proxy.ready(), { problem: String })
}

async function refuses(t: Test, proxy: Started, problem: RegExp, token = 'token') {
  for (const answer of [
    await proxy.makeDeal(token),
    await proxy.putPolicy(),
    await proxy.send('DELETE', '/photos', { query: { publicAccessBlock: '' } }),
  ])
    t.match(answer, { status: 503, body: /ServiceUnavailable.*operator of this server/s })
  t.equal((await proxy.send('GET', '/photos/a.zip')).body, 'archived', 'objects are served')
  t.equal((await proxy.send('PUT', '/photos/b', { body: 'x' })).status, 200, 'and stored')
  t.match(await proxy.ready(), { status: 200, problem })
  t.ok(proxy.lines.some(({ level, msg }) => level >= 50 && /dealgate state accept/.test(msg)))
}

async function flush(url: string) {
  const client = createClient({ url })
  await client.connect()
  await client.flushAll()
  await client.close()
}

t.test('Redis is flushed, and the data folder is new', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { gateway, start, deals } = await startScene(t)
  const one = await start('one', server.url)
  await furnish(t, one)
  await works(t, await start('two', server.url), 'another')
  await flush(server.url)
  const before = deals()
  const three = await start('three', server.url)
  await refuses(t, three, /come back empty/)
  t.equal(deals(), before, 'the same token has paid once')
  await three.close()
  const again = await start('three', server.url)
  await refuses(t, again, /come back empty/)
  const doctor = await runCli([
    ...['doctor', '--data', again.data, '--state', server.url, '--port', '0', '--gateway-url', gateway.url],
    ...['--gateway-access-key', gateway.accessKey, '--gateway-secret-key', gateway.secretKey],
  ])
  t.match(doctor, { code: 1, stdout: /^WRONG {2}state store: .*come back empty.*state accept/m })
  t.match(doctor.stdout, /^ok {5}gateway: /m)
  t.equal(await acceptLoss({ data: again.data, url: server.url, log }), true)
  t.equal(await acceptLoss({ data: again.data, url: server.url, log }), false)
  await works(t, again, 'after')
  t.equal((await again.putPolicy()).status, 204)
  await works(t, await start('four', server.url), 'later')
  // The first one knows another epoch, which was never named.
  await refuses(t, one, /not the one that this data folder/)
  t.equal(await acceptLoss({ data: one.data, url: server.url, log }), true)
  await works(t, one, 'at last')
  await works(t, again, 'here, too')
  await flush(server.url)
  await refuses(t, await start('five', server.url), /come back empty/)
})

t.test('Redis is restored from an older backup, and the data folder is new', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { start, deals } = await startScene(t)
  const one = await start('one', server.url)
  const idle = await start('idle', server.url)
  await furnish(t, one)
  await works(t, idle, 'token')
  const client = createClient({ url: server.url })
  await client.connect()
  t.teardown(() => client.close())
  for (const key of await client.keys('*')) await client.sendCommand(['COPY', key, key, 'DB', '1'])
  await works(t, one, 'later')
  await client.sendCommand(['SWAPDB', '0', '1'])
  const before = deals()
  // Neither its folder nor its memory has seen the mark of the later deal.
  t.match(await idle.makeDeal('later'), { status: 503, body: /older than it was/ })
  const two = await start('two', server.url)
  for (let times = 0; times < 3; times++) {
    t.match(await two.makeDeal('later'), { status: 503, body: /older than it was/ })
    // Raises no mark: the store would not look older for ever.
    t.match(await two.send('PUT', '/photos', { query: { publicAccessBlock: '' }, body: block }), { status: 503 })
  }
  await refuses(t, two, /older than it was/, 'later')
  await two.close()
  await refuses(t, await start('two', server.url), /older than it was/, 'later')
  t.equal(deals(), before, 'the same token has paid once')
  t.equal(await acceptLoss({ data: two.data, url: server.url, log }), true)
  for (const [name, proxy] of Object.entries({ one, idle })) await works(t, proxy, `accepted ${name}`)
})

t.test('Postgres loses tables', { skip: postgres.skip }, async (t) => {
  const server = await postgres.start()
  t.teardown(() => server.stop())
  const { start, deals } = await startScene(t)
  const one = await start('one', server.url)
  const two = await start('two', server.url)
  await furnish(t, one)
  await works(t, two, 'token')
  const before = deals()
  const client = new pg.Client(server.url)
  await client.connect()
  t.teardown(() => client.end())
  await client.query('TRUNCATE dealgate_other')
  for (const proxy of [one, two]) await refuses(t, proxy, /lost a part/)
  t.equal(deals(), before, 'the same token has paid once')
  t.match(await examineStore({ data: one.data, url: server.url, log }), { problem: /lost a part/ })
  t.equal(await acceptLoss({ data: one.data, url: server.url, log }), true)
  await works(t, one, 'accepted')
  await works(t, two, 'there, too')
  await Promise.all([one.close(), two.close()])
  await client.query('DROP TABLE dealgate_object')
  const again = await start('one', server.url)
  t.match(await again.makeDeal('third'), { status: 503 })
  t.match(await again.ready(), { problem: /lost a part/ })
})

t.test('the file of SQLite is removed', async (t) => {
  const { start } = await startScene(t)
  const first = await start('one')
  await furnish(t, first)
  const { data } = first
  await t.rejects(acceptLoss({ data, log }), { code: 'DATA_IN_USE' })
  await first.close()
  for (const end of ['', '-wal', '-shm']) rmSync(join(data, 'state', `records.sqlite${end}`), { force: true })
  const empty = await start('one')
  await refuses(t, empty, /come back empty/)
  await empty.close()
  t.equal(await acceptLoss({ data, log }), true)
  const accepted = await start('one')
  t.notMatch(await accepted.ready(), { problem: String })
  await accepted.close()
  rmSync(join(data, 'state'), { recursive: true })
  await refuses(t, await start('one'), /come back empty/)
})

t.test('a data folder of SQLite is restored whole from an older backup', async (t) => {
  const { start, deals, folder } = await startScene(t)
  const first = await start('one')
  await furnish(t, first)
  await first.close()
  cpSync(first.data, join(folder, 'backup'), { recursive: true })
  const second = await start('one')
  await works(t, second, 'later')
  await second.close()
  rmSync(first.data, { recursive: true })
  cpSync(join(folder, 'backup'), first.data, { recursive: true })
  const before = deals()
  const third = await start('one')
  t.match(await third.makeDeal('later'), { status: 503, body: /older than it was/ })
  await refuses(t, third, /older than it was/, 'later')
  t.equal(deals(), before, 'the same token has paid once')
  await third.close()
  t.equal(await acceptLoss({ data: first.data, log }), true)
  await works(t, await start('one'), 'accepted')
})

t.test('a further server with a store of its own', { skip: redis.skip }, async (t) => {
  const [first, second] = await Promise.all([redis.start(), redis.start()])
  t.teardown(() => Promise.all([first.stop(), second.stop()]))
  const { start } = await startScene(t)
  const one = await start('one', first.url)
  await furnish(t, one)
  const two = await start('two', second.url)
  await refuses(t, two, /further server/)
  await works(t, one, 'meanwhile')
  await two.close()
  t.equal(await acceptLoss({ data: two.data, url: second.url, log }), true)
  await works(t, await start('two', second.url), 'accepted')
  await works(t, one, 'as ever')
  await one.close()
  await works(t, await start('one', first.url), 'after a restart')
  await works(t, await start('three'), 'SQLite lies in the data folder')
})

t.test('a store that another gateway was used with', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { start } = await startScene(t)
  const one = await start('one', server.url)
  await furnish(t, one)
  const other = await redis.start()
  t.teardown(() => other.stop())
  const state = await openState({ data: temporaryFolder(t), url: other.url, log })
  await state.close()
  const two = await start('two', other.url)
  await refuses(t, two, /not one that was used with this gateway/)
  t.equal(await acceptLoss({ data: two.data, url: other.url, log }), true)
  await works(t, two, 'accepted')
})

t.test('a gateway that does not know the store yet', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { folder, gateway, start } = await startScene(t)
  const isTold = () => gateway.requests.some(({ body }) => /StateEpoch.*"keep":true/.test(body.toString()))
  // As with the version before, or after a crash between the store and the gateway.
  const former = await openState({ data: join(folder, 'one'), url: server.url, log })
  await former.close()
  const two = await start('two', server.url)
  await furnish(t, two)
  t.ok(isTold())
  gateway.requests.length = 0
  const one = await start('one', server.url)
  await until('also a data folder that knows the store has it told', isTold)
  await works(t, one, 'another')
  await two.close()
  await one.close()
  await flush(server.url)
  await refuses(t, await start('three', server.url), /come back empty/)
})

t.test('the gateway comes up later', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { gateway, start, deals } = await startScene(t)
  const isUp = () => (gateway.fate = () => 'pass')
  const isDown = () => (gateway.fate = () => 'cut-before')
  isDown()
  const one = await start('one', server.url)
  t.match(await one.makeDeal('token'), { status: 503 })
  isUp()
  await furnish(t, one)
  await one.close()
  isDown()
  await flush(server.url)
  const two = await start('two', server.url)
  t.match(await two.makeDeal('token'), { status: 503 })
  t.notMatch(await two.ready(), { problem: String }, 'it is not known yet')
  isUp()
  const before = deals()
  await until('the server finds it out by itself', async () => (await two.ready()).problem !== undefined)
  await refuses(t, two, /come back empty/)
  t.equal(deals(), before)
})

t.test('many start at once on a new store and a new gateway', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { start } = await startScene(t)
  const all = await Promise.all(Array.from({ length: 6 }, (_, i) => start(`${i}`, server.url)))
  await furnish(t, all[0] as Started)
  for (const [i, proxy] of all.entries()) {
    await works(t, proxy, `again-${i}`)
    t.notOk(proxy.lines.some(({ msg }) => /state accept/.test(msg)))
  }
})

t.test('a legacy gateway knows no stores', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { gateway, start } = await startScene(t, 'legacy')
  const one = await start('one', server.url)
  await furnish(t, one)
  await flush(server.url)
  const two = await start('two', server.url)
  // A deal on the same terms may be the one whose record was lost: it is not paid again without `Force`.
  t.match(await two.makeDeal('other'), { status: 409, body: /DuplicateRequest/ })
  t.notMatch(await two.ready(), { problem: String })
  await refuses(t, one, /not the one that this data folder/)
  t.notOk(gateway.requests.some(({ body }) => body.includes('StateEpoch')))
})
