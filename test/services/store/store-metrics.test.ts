import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { type FamilySnapshot, Metrics } from '../../../common/metrics.js'
import { silentLog } from '../../../services/log.js'
import type { Connection, Schema } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { StoreMetrics } from '../../../services/store/store-metrics.js'
import { postgres } from '../../src/state/servers.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { clientOf, first, refuse } from './local-store.js'

const schema: Schema<Connection> = {
  owner: 'the counted service',
  name: 'counted',
  steps: ['CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;'],
  tables: (connection) => connection,
}

/** The values of a family, by their labels. */
function valuesOf(families: readonly FamilySnapshot[], name: string): Record<string, number> {
  const { values = [] } = families.find((family) => family.name === name) ?? {}
  return Object.fromEntries(
    values
      .filter(({ metricName = name, labels }) => !('le' in labels) && !metricName.endsWith('_sum'))
      .map(({ labels, value }) => [Object.values(labels).join(' '), value]),
  )
}

t.test('PostgreSQL', { skip: postgres.skip }, async (t) => {
  const server = await postgres.start(['-c', 'fsync=off'])
  const metrics = new Metrics()
  const place = { file: join(temporaryFolder(t), 'own.db'), database: server.url, metrics: new StoreMetrics(metrics) }
  const db = await openStore(schema, place, silentLog)
  t.teardown(() => db.close())
  const value = async (name: string) => valuesOf(await metrics.snapshot(), `dealgate_database_${name}`)
  await db.transaction((connection) => connection.prepare(`INSERT INTO counters VALUES ('a', 0)`).run())
  const add = () =>
    db.transaction(async (connection) => {
      const row = await connection.prepare('SELECT value FROM counters').get<{ value: number }>()
      await connection.prepare('UPDATE counters SET value = ?').run((row?.value ?? 0) + 1)
    })
  await Promise.all(Array.from({ length: 12 }, add))
  t.same(await db.read.prepare('SELECT value FROM counters').all(), [{ value: 12 }])
  t.same(await value('transaction_duration_seconds'), { counted: 13 }, 'with its repetitions, each counts once')
  t.same(await value('statement_duration_seconds'), { counted: 1 })
  t.ok(((await value('retries_total')).counted ?? 0) > 0)
  const use = await value('connections')
  t.match(use, { 'counted busy': 0, 'counted waiting': 0 })
  t.ok((use['counted free'] ?? 0) > 0)
  t.same(await value('unavailable_total'), { counted: 0 })
  await server.stop()
  await t.rejects(db.read.prepare('SELECT value FROM counters').all())
  await t.rejects(add())
  t.same(await value('unavailable_total'), { counted: 2 })
})

t.test('the S3 store of bodies', async (t) => {
  const metrics = new Metrics()
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.endsWith('/a')) response.end('12345')
    else if (request.url?.endsWith('/b')) refuse(response, 404, 'NoSuchKey')
    else refuse(response, 503, 'SlowDown')
  }
  const limits = { maxWaitMs: 0, idleMs: 60_000 }
  const client = await clientOf(t, serve, limits, () => first, new StoreMetrics(metrics).bodies)
  const { signal } = new AbortController()
  await client.ask({ method: 'PUT', key: 'a', body: [Buffer.alloc(100), Buffer.alloc(11)] }, signal)
  await client.ask({ method: 'GET', key: 'a' }, signal)
  for (const key of ['b', 'c', 'c']) await t.rejects(client.ask({ method: 'GET', key }, signal))
  const families = await metrics.snapshot()
  t.same(valuesOf(families, 'dealgate_body_store_requests_total'), {
    'PUT ok': 1,
    'GET ok': 1,
    'GET refused': 1,
    'GET failed': 2,
  })
  t.same(valuesOf(families, 'dealgate_body_store_request_duration_seconds'), { PUT: 1, GET: 4 })
  const { sent, received } = valuesOf(families, 'dealgate_body_store_bytes_total')
  t.equal(sent, 111)
  t.ok((received ?? 0) > 10, 'also of errors')
})

t.test('the docs name all of them', async (t) => {
  const metrics = new Metrics()
  new StoreMetrics(metrics).database('any')
  const page = readFileSync('docs/observability.md', 'utf8')
  for (const { name } of await metrics.snapshot()) t.ok(page.includes(`\`${name}\``), name)
})
