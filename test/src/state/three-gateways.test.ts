import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import { onPostgres } from '../../services/engine.js'
import { S3Store } from '../../services/gateway/s3-store.js'
import { MiB } from '../../support/content/content.js'
import type { Fate } from '../../support/gateway/between.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { type Endpoint, insist, send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'
import { type Gateways, paused, restarted, startGateways } from './gateways.js'
import { type PostgresServer, postgres } from './servers.js'
import { acknowledged, askForDeal, BUCKET, DEALT, holds, upload, WriteScene } from './write-scene.js'

// Three gateways on one PostgreSQL, with the bodies in an S3 store, and three proxies before a balancer that sends each
// request to any of the gateways. Something fails in each round of writes. `npm test -- --suite engines` does one round
// of each kind, `npm run stress` 300.

const PAIR = { accessKey: 'gateways-access', secretKey: 'gateways-secret-key' }
const COUNT = 3
/** Longer than leases of gateways last, ms. */
const PAST_LEASES_MS = 11_000
const FAILS_MS = 2000
const DEAL_PATIENCE_MS = 240_000
const PART = Buffer.alloc(5 * MiB, 'part')

const half = (body: Buffer) => body.subarray(0, body.length >> 1)
const STORE: readonly Fate[] = [
  { status: 503, type: 'application/xml', body: '<Error><Code>SlowDown</Code></Error>' },
  { status: 500, body: '' },
  ...(['cut-before', 'cut-during', 'cut-after', 'silence-after', 'cut-in-body'] as const),
  { change: half },
]

interface Scene extends Gateways {
  readonly database: PostgresServer
  /** Undefined: bodies are files of the data folder. */
  readonly store: S3Store | undefined
  readonly proxies: readonly Endpoint[]
}

type Fault = (scene: Scene, round: number) => Promise<void>

const oneOf = <T>(list: readonly T[], round: number): T => list[round % list.length] as T

const faults: Readonly<Record<string, Fault>> = {
  'a gateway is killed': ({ all }, round) => restarted(oneOf(all, round)),
  'PostgreSQL cuts the connections of a gateway': async ({ all, database }, round) =>
    oneOf(all, round).way.moveTo(database.url),
  'PostgreSQL does not answer a gateway': async ({ all }, round) => {
    const { way } = oneOf(all, round)
    way.hang()
    await sleep(FAILS_MS)
    way.go()
  },
  'PostgreSQL is restarted': ({ database }, round) => database.restart(round % 4 === 0 ? 'SIGQUIT' : 'SIGINT'),
  'the store fails': async ({ store }) => {
    if (store === undefined) return
    store.between.fate = () => (Math.random() < 0.4 ? 'pass' : oneOf(STORE, Math.floor(Math.random() * STORE.length)))
    await sleep(FAILS_MS)
    store.between.fate = () => 'pass'
  },
  'a gateway stands still for longer than its leases last': ({ all }, round) =>
    paused(oneOf(all, round), PAST_LEASES_MS),
}
const NAMES = Object.keys(faults)
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? (onPostgres ? NAMES.length : 0))
/** With bodies in the folder of all. */
const FOLDER_ROUNDS = Math.floor(ROUNDS / 10)

async function start(t: Test, store: S3Store | undefined): Promise<Scene> {
  const database = await postgres.start(['-c', 'fsync=off', '-c', 'max_connections=400'])
  t.teardown(() => database.stop())
  const gateways = await startGateways(t, COUNT, { database: database.url, store })
  const args = [
    ...['--state', database.url, '--staging', 'gateway', '--lock-lease-seconds', '1', '--gateway-timeout-seconds', '3'],
    ...['--log-level', 'warn', '--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey],
  ]
  const proxies = await Promise.all(
    Array.from({ length: COUNT }, () => startDealgate(t, { gateway: gateways.between, args })),
  )
  return {
    ...gateways,
    database,
    store,
    proxies: proxies.map(({ endpoint, region }) => ({ ...PAIR, endpoint, region })),
  }
}

/** The only row that PostgreSQL answers. */
async function ask<Row>({ database }: Scene, sql: string): Promise<Row> {
  const client = new pg.Client(database.url)
  await client.connect()
  const { rows } = await client.query(sql)
  await client.end()
  return rows[0]
}

/** What the buckets are said to hold, and what they hold. */
const COUNTED = `
  SELECT sum(objects)::int AS objects, sum(bytes)::float8 AS bytes FROM (
    SELECT objects, bytes FROM dealgate_gateway.buckets UNION ALL
    SELECT objects, bytes FROM dealgate_gateway.bucket_changes UNION ALL
    SELECT -count(*), -coalesce(sum(size), 0) FROM dealgate_gateway.objects
  ) AS counted`

/** The bodies in the store that objects have. */
const NAMED = `
  SELECT array_agg(coalesce(body_name, generation)) AS names FROM dealgate_gateway.objects
  WHERE body_at = 0`

async function exactQuota(t: Test, { data, database, between, proxies }: Scene): Promise<void> {
  const registry = await openAccountRegistry(join(data, 'services'), database.url)
  t.teardown(() => registry.close())
  const { usage } = await registry.quota(between.accessKey)
  await registry.quota(between.accessKey, { objects: usage.objects + 5 })
  const statuses = await Promise.all(
    Array.from({ length: 15 }, async (_, i) => {
      const target = `/${BUCKET}/quota-${i}`
      const server = oneOf(proxies, i)
      const sending = { method: 'PUT', target, body: Buffer.from('x') }
      // A gateway that has too much contention says so.
      return until(target, async () => {
        const { status, code } = await send(server, sending)
        return status < 500 ? (code ?? status) : undefined
      })
    }),
  )
  const refused = Array(10).fill('QuotaExceeded')
  t.same(statuses.sort(), [200, 200, 200, 200, 200, ...refused], 'as many as the quota lets in')
  await registry.quota(between.accessKey, { objects: null })
}

/** The deal of an object, which a client token makes once; undefined while it is under way. */
async function deal(server: Endpoint, key: string): Promise<string | undefined> {
  const { status, json } = await askForDeal(server, key)
  return status === 200 ? json.Deal.DealCid : undefined
}

/** Files of the folder, or keys of the store. */
async function bodiesOf({ store, data }: Scene): Promise<string[]> {
  const folder = join(data, 'services', 'gateway', 'objects')
  return store ? store.keys() : readdirSync(folder, { recursive: true, encoding: 'utf8' })
}

async function fail(t: Test, scene: Scene, rounds: number): Promise<void> {
  const { proxies } = scene
  const [first] = proxies as [Endpoint]
  await insist(first, 'the bucket is made', { method: 'PUT', target: `/${BUCKET}` })
  await t.test('a quota is exact', (t) => exactQuota(t, scene))

  const writes = new WriteScene(proxies, { reads: true })
  const deals = new Map<string, Promise<string>>()
  for (let round = 0; round < rounds; round++) {
    const name = oneOf(NAMES, round)
    await t.test(`${round}: ${name}`, async (t) => {
      const dealt = `dealt-${round}`
      await insist(first, dealt, { method: 'PUT', target: `/${BUCKET}/${dealt}`, body: DEALT })
      const parts = [PART, Buffer.from(String(round))]
      const key = await writes.round(round, async () => {
        const server = oneOf(proxies, round)
        const uploaded = upload(server, `upload-${round}`, parts)
        deals.set(
          dealt,
          until(`${dealt} has its deal`, () => deal(server, dealt), DEAL_PATIENCE_MS),
        )
        const failing = sleep(Math.random() * 400).then(() => faults[name]?.(scene, Math.floor(Math.random() * 100)))
        await Promise.all([failing, uploaded])
      })
      await holds(t, first, `upload-${round}`, parts)
      const wrong = await writes.whatIsWrong(key)
      if (wrong !== undefined) t.fail(`${key}: ${wrong}`, { writes: writes.writes.get(key) })
      t.match(await ask(scene, COUNTED), { objects: 0, bytes: 0 }, 'what is counted is what is there')
    })
  }

  for (const key of writes.writes.keys()) t.equal(await writes.whatIsWrong(key), undefined, `${key} in the end`)
  t.same(writes.strange, [], 'readers got what was written')
  const cids = await Promise.all(deals.values())
  t.equal(new Set(cids).size, rounds, 'each object has its deal')
  t.match(
    await ask(scene, 'SELECT count(*)::int AS made FROM dealgate_network.deals'),
    { made: rounds },
    'and no other',
  )
  const stored = await bodiesOf(scene)
  const { names } = await ask<{ names: string[] }>(scene, NAMED)
  t.same(
    names.filter((name) => !stored.some((key) => key.endsWith(`/${name}`))),
    [],
    'each row has its body',
  )
  const all = [...writes.writes.values()].flat()
  t.ok(all.some(acknowledged), `${all.filter(acknowledged).length} of ${all.length} writes were acknowledged`)
  await until('no deal holds a body', async () => {
    const { retained } = await ask<{ retained: number }>(
      scene,
      'SELECT count(*)::int AS retained FROM dealgate_gateway.retained',
    )
    return retained === 0
  })
}

const notIn = (rounds: number) => rounds === 0 && 'part of npm test -- --suite engines and npm run stress'
const optionsOf = (rounds: number) => ({ skip: postgres.skip || notIn(rounds), timeout: 300_000 + rounds * 60_000 })

t.test('three gateways and what fails under them', optionsOf(ROUNDS), async (t) => {
  const store = await S3Store.start(t, 'minio')
  if (store !== undefined) await fail(t, await start(t, store), ROUNDS)
})

t.test('the same with bodies in a folder', optionsOf(FOLDER_ROUNDS), async (t) => {
  await fail(t, await start(t, undefined), FOLDER_ROUNDS)
})
