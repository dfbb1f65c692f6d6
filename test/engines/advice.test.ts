import { createClient } from '@keyv/redis'
import pg from 'pg'
import t from 'tap'
import { redisAdvice } from '../../engines/redis/backend.js'
import { examineStore } from '../../src/state/open-backend.js'
import { openState } from '../../src/state/open-state.js'
import { postgres, redis } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { keptLog } from '../support/server/kept-log.js'
import { until } from '../support/waiting.js'

// Settings of databases that lose acknowledged records are reported, with the remedy.

t.test('Redis', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const client = createClient({ url: server.url })
  await client.connect()
  t.teardown(() => client.close())
  const { log, lines } = keptLog()
  const data = temporaryFolder(t)
  const advice = async () => (await examineStore({ data, url: server.url, log })).advice

  t.match(await advice(), [/appendfsync always/])
  await client.configSet('appendfsync', 'always')
  t.same(await advice(), [])
  await client.configSet({ maxmemory: '100000000', 'maxmemory-policy': 'volatile-lru' })
  t.match(await advice(), [/maxmemory-policy noeviction/])
  await client.configSet('maxmemory-policy', 'noeviction')
  await client.configSet('appendonly', 'no')
  t.match(await advice(), [/appendonly yes/])

  const state = await openState({ data, url: server.url, log })
  await state.close()
  t.ok(
    lines.some(({ level, msg }) => level === 40 && /appendonly yes/.test(msg)),
    'the log of a start has it',
  )
  const doctor = await runCli(['doctor', '--data', data, '--state', server.url, '--port', '0', '--gateway-port', '0'])
  t.match(doctor, { code: 0, stdout: /^warn {3}state store: Redis keeps no append-only file/m })
  await client.configSet('appendonly', 'yes')

  const replica = await redis.start()
  t.teardown(() => replica.stop())
  const second = createClient({ url: replica.url })
  await second.connect()
  t.teardown(() => second.close())
  const { hostname, port } = new URL(server.url)
  await second.sendCommand(['REPLICAOF', hostname, port])
  await until('there is a replica', async () => (await client.info('replication')).includes('state=online'))
  t.match(await advice(), [/min-replicas-to-write 1/])
  t.match(
    await redisAdvice(
      (section) => second.info(section),
      async () => {
        throw new Error('ERR unknown command')
      },
    ),
    [/is a replica/],
    'also where CONFIG is refused',
  )
})

t.test('Postgres', { skip: postgres.skip }, async (t) => {
  const server = await postgres.start()
  t.teardown(() => server.stop())
  const client = new pg.Client(server.url)
  await client.connect()
  t.teardown(() => client.end())
  const { log } = keptLog()
  const advice = async () => (await examineStore({ data: temporaryFolder(t), url: server.url, log })).advice
  t.same(await advice(), [])
  await client.query('ALTER ROLE dealgate SET synchronous_commit = off')
  await client.query('ALTER TABLE dealgate_object SET UNLOGGED')
  t.match(await advice(), [/synchronous_commit = off/, /1 tables of dealgate are UNLOGGED/])
  await client.query('ALTER ROLE dealgate RESET synchronous_commit')
  await client.query('ALTER TABLE dealgate_object SET LOGGED')
  t.same(await advice(), [])
})

t.test('dealgate state accept', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const data = temporaryFolder(t)
  const { log } = keptLog()
  const state = await openState({ data, url: server.url, log })
  t.teardown(() => state.close())
  const accept = () => runCli(['state', 'accept', '--data', data, '--state', server.url])
  t.match(await accept(), { code: 0, stdout: /nothing to accept/ })
  const client = createClient({ url: server.url })
  await client.connect()
  await client.flushAll()
  await client.close()
  await t.rejects(state.requireIntact(), { code: 'ServiceUnavailable' })
  const doctor = await runCli(['doctor', '--data', data, '--state', server.url, '--port', '0', '--gateway-port', '0'])
  t.match(doctor, { code: 1, stdout: /^WRONG {2}state store: .*come back empty.*state accept/m })
  t.match(await accept(), { code: 0, stdout: /accepted as it is/ }, 'beside a running server')
  await state.requireIntact()
})
