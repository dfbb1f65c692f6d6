import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@keyv/redis'
import pg from 'pg'
import t, { type Test } from 'tap'
import { serve } from '../../../cli/process/listen.js'
import deal from '../../../plugins/deal/index.js'
import { startServices } from '../../../services/index.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import { acceptLoss, examineStore } from '../../../src/state/open-backend.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { publicRead } from '../../support/content/policies.js'
import { Between } from '../../support/gateway/between.js'
import { keptLog } from '../../support/server/kept-log.js'
import { quirksOf } from '../../support/server/modes.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { postgres, redis, type StateServerKind } from './servers.js'

// Stores of records that come back empty, older or without a part of what they held, also to a proxy with a new data
// folder: then only the gateway knows that there were records.

const KEYS = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
const { log } = keptLog()

const block =
  '<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy></PublicAccessBlockConfiguration>'
const policy = publicRead('photos')

async function startScene(t: Test, kind?: StateServerKind, mode: 'full' | 'legacy' = 'full') {
  const folder = temporaryFolder(t)
  const store = await kind?.start()
  t.teardown(() => store?.stop())
  const services = await startServices({
    data: join(folder, 'services'),
    gateway: { host: '127.0.0.1', port: 0, quirks: quirksOf(mode) },
  })
  t.teardown(() => services.stop())
  const gateway = await Between.start(t, { url: services.gateway.url, ...(await services.gateway.credentials()) })

  /** A proxy with a data folder of that name, and its state in the store, or in the folder where there is none. */
  async function start(name: string, stateUrl = store?.url) {
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
  return { folder, url: store?.url ?? '', gateway, start, deals }
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
  const { url, start, deals } = await startScene(t, redis)
  const one = await start('one')
  await furnish(t, one)
  await works(t, await start('two'), 'another')
  await flush(url)
  const before = deals()
  const three = await start('three')
  await refuses(t, three, /come back empty/)
  t.equal(deals(), before, 'the same token has paid once')
  await three.close()
  const again = await start('three')
  await refuses(t, again, /come back empty/)
  t.equal(await acceptLoss({ data: again.data, url, log }), true)
  t.equal(await acceptLoss({ data: again.data, url, log }), false)
  await works(t, again, 'after')
  t.equal((await again.putPolicy()).status, 204)
  await works(t, await start('four'), 'later')
  // The first one knows another epoch, which was never named.
  await refuses(t, one, /not the one that this data folder/)
  t.equal(await acceptLoss({ data: one.data, url, log }), true)
  await works(t, one, 'at last')
  await works(t, again, 'here, too')
  await flush(url)
  await refuses(t, await start('five'), /come back empty/)
})

t.test('Redis is restored from an older backup, and the data folder is new', { skip: redis.skip }, async (t) => {
  const { url, start, deals } = await startScene(t, redis)
  const one = await start('one')
  const idle = await start('idle')
  await furnish(t, one)
  await works(t, idle, 'token')
  const client = createClient({ url })
  await client.connect()
  t.teardown(() => client.close())
  for (const key of await client.keys('*')) await client.sendCommand(['COPY', key, key, 'DB', '1'])
  await works(t, one, 'later')
  await client.sendCommand(['SWAPDB', '0', '1'])
  const before = deals()
  // Neither its folder nor its memory has seen the mark of the later deal.
  t.match(await idle.makeDeal('later'), { status: 503, body: /older than it was/ })
  const two = await start('two')
  for (let times = 0; times < 3; times++) {
    t.match(await two.makeDeal('later'), { status: 503, body: /older than it was/ })
    // Raises no mark: the store would not look older for ever.
    t.match(await two.send('PUT', '/photos', { query: { publicAccessBlock: '' }, body: block }), { status: 503 })
  }
  await refuses(t, two, /older than it was/, 'later')
  await two.close()
  await refuses(t, await start('two'), /older than it was/, 'later')
  t.equal(deals(), before, 'the same token has paid once')
  t.equal(await acceptLoss({ data: two.data, url, log }), true)
  for (const [name, proxy] of Object.entries({ one, idle })) await works(t, proxy, `accepted ${name}`)
})

t.test('Postgres loses tables', { skip: postgres.skip }, async (t) => {
  const { url, start, deals } = await startScene(t, postgres)
  const one = await start('one')
  const two = await start('two')
  await furnish(t, one)
  await works(t, two, 'token')
  const before = deals()
  const client = new pg.Client(url)
  await client.connect()
  t.teardown(() => client.end())
  await client.query('TRUNCATE dealgate_other')
  for (const proxy of [one, two]) await refuses(t, proxy, /lost a part/)
  t.equal(deals(), before, 'the same token has paid once')
  t.match(await examineStore({ data: one.data, url, log }), { problem: /lost a part/ })
  t.equal(await acceptLoss({ data: one.data, url, log }), true)
  await works(t, one, 'accepted')
  await works(t, two, 'there, too')
  await Promise.all([one.close(), two.close()])
  await client.query('DROP TABLE dealgate_object')
  const again = await start('one')
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
  const second = await redis.start()
  t.teardown(() => second.stop())
  const { start } = await startScene(t, redis)
  const one = await start('one')
  await furnish(t, one)
  const two = await start('two', second.url)
  await refuses(t, two, /further server/)
  await works(t, one, 'meanwhile')
  await two.close()
  t.equal(await acceptLoss({ data: two.data, url: second.url, log }), true)
  await works(t, await start('two', second.url), 'accepted')
  await works(t, one, 'as ever')
})

t.test('a store that another gateway was used with', { skip: redis.skip }, async (t) => {
  const { start } = await startScene(t, redis)
  const one = await start('one')
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
  const { url, folder, gateway, start } = await startScene(t, redis)
  const isTold = () => gateway.requests.some(({ body }) => /StateEpoch.*"keep":true/.test(body.toString()))
  // As with the version before, or after a crash between the store and the gateway.
  const former = await openState({ data: join(folder, 'one'), url, log })
  await former.close()
  const two = await start('two')
  await furnish(t, two)
  t.ok(isTold())
  gateway.requests.length = 0
  const one = await start('one')
  await until('also a data folder that knows the store has it told', isTold)
  await works(t, one, 'another')
  await two.close()
  await one.close()
  await flush(url)
  await refuses(t, await start('three'), /come back empty/)
})

t.test('the gateway comes up later', { skip: redis.skip }, async (t) => {
  const { url, gateway, start, deals } = await startScene(t, redis)
  const isUp = () => (gateway.fate = () => 'pass')
  const isDown = () => (gateway.fate = () => 'cut-before')
  isDown()
  const one = await start('one')
  t.match(await one.makeDeal('token'), { status: 503 })
  isUp()
  await furnish(t, one)
  await one.close()
  isDown()
  await flush(url)
  const two = await start('two')
  t.match(await two.makeDeal('token'), { status: 503 })
  t.notMatch(await two.ready(), { problem: String }, 'it is not known yet')
  isUp()
  const before = deals()
  await until('the server finds it out by itself', async () => (await two.ready()).problem !== undefined)
  await refuses(t, two, /come back empty/)
  t.equal(deals(), before)
})

t.test('a legacy gateway knows no stores', { skip: redis.skip }, async (t) => {
  const { url, gateway, start } = await startScene(t, redis, 'legacy')
  const one = await start('one')
  await furnish(t, one)
  await flush(url)
  const two = await start('two')
  // A deal on the same terms may be the one whose record was lost: it is not paid again without `Force`.
  t.match(await two.makeDeal('other'), { status: 409, body: /DuplicateRequest/ })
  t.notMatch(await two.ready(), { problem: String })
  await refuses(t, one, /not the one that this data folder/)
  t.notOk(gateway.requests.some(({ body }) => body.includes('StateEpoch')))
})
