import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@keyv/redis'
import pg from 'pg'
import t, { type Test } from 'tap'
import deal from '../../plugins/deal/index.js'
import { acceptLoss, examineStore } from '../../src/state/open-backend.js'
import { openState } from '../../src/state/open-state.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Between } from '../support/gateway/between.js'
import { keptLog } from '../support/server/kept-log.js'
import { until } from '../support/waiting.js'
import { startHanging } from './hanging.js'
import { postgres, redis } from './servers.js'
import { type OneOfSeveral, startSeveral } from './several-proxies.js'

// Stores of records that come back empty, or without a part of what they held.

const { log } = keptLog()

const block =
  '<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy></PublicAccessBlockConfiguration>'
const policy = JSON.stringify({
  Version: '2012-10-17',
  Statement: [
    { Effect: 'Allow', Principal: '*', Action: 's3:ListBucket', Resource: 'arn:aws:s3:::photos' },
    { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::photos/*' },
  ],
})

const makeDeal = (proxy: OneOfSeveral, token: string) =>
  proxy.send('POST', '/photos/a.zip', {
    query: { 'x-deal': '', format: 'json' },
    headers: { 'content-type': 'application/json', 'x-amz-client-token': token },
    body: JSON.stringify({ MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518400 }),
  })
const putPolicy = (proxy: OneOfSeveral) => proxy.send('PUT', '/photos', { query: { policy: '' }, body: policy })
const isReady = async (proxy: OneOfSeveral) => {
  const answer = await fetch(`${proxy.endpoint}/-/ready`)
  return { ...((await answer.json()) as { problem?: string }), status: answer.status }
}

async function furnish(t: Test, url: string) {
  let between: Between | undefined
  const several = await startSeveral(t, url, 'full', async (gateway) => {
    between = await Between.start(t, gateway)
    return between
  })
  const plugins = () => ({ plugins: [deal({ statusIntervalSeconds: 86_400 })] })
  const one = await several.start('one', plugins())
  const two = await several.start('two', plugins())
  t.equal((await one.send('PUT', '/photos')).status, 200)
  t.equal((await one.send('PUT', '/photos/a.zip', { body: 'archived' })).status, 200)
  t.equal((await one.send('PUT', '/photos', { query: { publicAccessBlock: '' }, body: block })).status, 200)
  const made = await makeDeal(one, 'token')
  t.ok(made.status < 300, made.body)
  const again = await makeDeal(two, 'token')
  t.ok(again.status < 300, again.body)
  const deals = () => between?.count('POST', '/gateway/deal') ?? Number.NaN
  const start = (name: string) => several.start(name, plugins())
  return { one, two, deals, start }
}

async function refuses(t: Test, proxies: OneOfSeveral[]) {
  for (const proxy of proxies) {
    for (const answer of [
      await makeDeal(proxy, 'token'),
      await putPolicy(proxy),
      await proxy.send('DELETE', '/photos', { query: { publicAccessBlock: '' } }),
    ])
      t.match(answer, { status: 503, body: /ServiceUnavailable.*operator of this server/s })
    t.equal((await proxy.send('GET', '/photos/a.zip')).body, 'archived', 'objects are served')
    t.equal((await proxy.send('PUT', '/photos/b', { body: 'x' })).status, 200, 'and stored')
    t.match(await isReady(proxy), { status: 200, problem: /state store/ })
    t.ok(
      proxy.lines.some(({ level, msg }) => level >= 50 && /dealgate state accept/.test(msg)),
      'the log says what to do',
    )
  }
}

async function goesOn(t: Test, proxies: OneOfSeveral[]) {
  for (const [i, proxy] of proxies.entries()) {
    t.ok((await makeDeal(proxy, `another-${i}`)).status < 300)
    t.notMatch(await isReady(proxy), { problem: String })
  }
  t.equal((await putPolicy(proxies[0] as OneOfSeveral)).status, 204)
}

t.test('Redis is flushed', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { one, two, deals, start } = await furnish(t, server.url)
  const before = deals()
  t.match(await examineStore({ data: one.data, url: server.url, log }), { problem: undefined })
  const client = createClient({ url: server.url })
  await client.connect()
  await client.flushAll()
  await client.close()
  await refuses(t, [one, two])
  t.equal(deals(), before, 'the same token has paid once')
  t.match(await examineStore({ data: one.data, url: server.url, log }), { problem: /come back empty.*state accept/ })
  // A new proxy knows nothing of what was there, and those that do are not told otherwise by it.
  await start('three')
  await refuses(t, [one])
  t.equal(await acceptLoss({ data: two.data, url: server.url, log }), true)
  await goesOn(t, [one, two])
  t.equal(await acceptLoss({ data: two.data, url: server.url, log }), false)
})

t.test('Redis is restarted without what it held', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const between = await startHanging(t, server.url)
  const { one, two, deals } = await furnish(t, between.url)
  const before = deals()
  const empty = await redis.start()
  t.teardown(() => empty.stop())
  between.moveTo(empty.url)
  await until('both are connected again', async () => (await one.send('GET', '/photos/a.zip')).status === 200)
  await until('both are connected again', async () => (await two.send('GET', '/photos/a.zip')).status === 200)
  await refuses(t, [one, two])
  t.equal(deals(), before)
  between.moveTo(server.url)
  await until(
    'the old store is back',
    async () => (await makeDeal(one, 'token').catch(() => undefined))?.status === 200,
  )
  await until('it is known for whole', async () => (await isReady(one)).problem === undefined)
  t.equal((await putPolicy(one)).code, 'AccessDenied', 'with the public access block that it holds')
})

t.test('Postgres loses tables', { skip: postgres.skip }, async (t) => {
  const server = await postgres.start()
  t.teardown(() => server.stop())
  const { one, two, deals, start } = await furnish(t, server.url)
  const before = deals()
  const client = new pg.Client(server.url)
  await client.connect()
  t.teardown(() => client.end())
  await client.query('TRUNCATE dealgate_other')
  await refuses(t, [one, two])
  t.equal(deals(), before, 'the same token has paid once')
  t.match(await examineStore({ data: one.data, url: server.url, log }), { problem: /lost a part/ })
  t.equal(await acceptLoss({ data: one.data, url: server.url, log }), true)
  await goesOn(t, [one, two])

  await one.close()
  await two.close()
  await client.query('DROP TABLE dealgate_object')
  const again = await start('one')
  t.match(await makeDeal(again, 'third'), { status: 503 })
  t.match(await isReady(again), { problem: /lost a part/ })
})

t.test('the file of SQLite is removed', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const state = await openState({ data, log })
  await state.requireIntact()
  await state.close()
  const same = await openState({ data, log })
  await same.requireIntact()
  t.equal(same.problem(), undefined)
  await t.rejects(acceptLoss({ data, log }), { code: 'DATA_IN_USE' })
  await same.close()
  for (const end of ['', '-wal', '-shm']) rmSync(join(data, 'state', `records.sqlite${end}`), { force: true })
  const empty = await openState({ data, log })
  t.match(empty.problem(), /come back empty/)
  await t.rejects(empty.requireIntact(), { code: 'ServiceUnavailable' })
  await empty.close()
  t.equal(await acceptLoss({ data, log }), true)
  const accepted = await openState({ data, log })
  await accepted.requireIntact()
  await accepted.close()
  rmSync(join(data, 'state'), { recursive: true })
  const gone = await openState({ data, log })
  t.match(gone.problem(), /come back empty/, 'also with all of its folder')
  await gone.close()
})

t.test('a file of SQLite from an older backup', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const file = join(data, 'state', 'records.sqlite')
  const first = await openState({ data, log })
  await first.raiseMark()
  await first.close()
  const ends = ['', '-wal', '-shm'].filter((end) => existsSync(file + end))
  for (const end of ends) copyFileSync(file + end, join(data, `old${end}`))
  const later = await openState({ data, log })
  await later.raiseMark()
  await later.close()
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
  for (const end of ends) renameSync(join(data, `old${end}`), file + end)
  const older = await openState({ data, log })
  t.match(older.problem(), /older than it was/)
  await t.rejects(older.requireIntact(), { code: 'ServiceUnavailable' })
  await older.close()
  t.match(await examineStore({ data, log }), { problem: /older than it was.*state accept/ })
  t.equal(await acceptLoss({ data, log }), true)
  const accepted = await openState({ data, log })
  await accepted.requireIntact()
  t.equal(accepted.problem(), undefined)
  await accepted.close()
})

t.test('Redis is restored from an older backup', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const { one, two, deals } = await furnish(t, server.url)
  const client = createClient({ url: server.url })
  await client.connect()
  t.teardown(() => client.close())
  for (const key of await client.keys('*')) await client.sendCommand(['COPY', key, key, 'DB', '1'])
  const made = await makeDeal(one, 'later')
  t.ok(made.status < 300, made.body)
  const before = deals()
  await client.sendCommand(['SWAPDB', '0', '1'])
  t.match(await makeDeal(one, 'later'), { status: 503, body: /older than it was/ })
  t.equal(deals(), before, 'the same token has paid once')
  t.equal(await acceptLoss({ data: one.data, url: server.url, log }), true)
  for (const proxy of [one, two]) {
    t.ok((await makeDeal(proxy, 'another')).status < 300)
    t.notMatch(await isReady(proxy), { problem: String })
  }
})

t.test('many proxies that start at once on a new store agree on it', { skip: redis.skip }, async (t) => {
  for (const kind of [redis, postgres]) {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const folder = temporaryFolder(t)
    const states = await Promise.all(
      Array.from({ length: 6 }, (_, i) => openState({ data: join(folder, kind.name, `${i}`), url: server.url, log })),
    )
    for (const state of states) {
      await state.requireIntact()
      await state.close()
    }
  }
})
