import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { get, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import type { GatewayOptions } from '../../../services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { killed } from '../../support/server/child.js'
import { until } from '../../support/waiting.js'
import { newDatabase, onPostgres } from '../engine.js'
import { inProcess } from './child.js'
import { Client, encodeKey, fence } from './client.js'
import { DealClient, type Envelope } from './deal-client.js'
import { PRIVATE } from './offline-scene.js'
import { S3Store } from './s3-store.js'

/** Several processes of the gateway over one PostgreSQL database. */

const skip = onPostgres ? false : 'on PostgreSQL'
const bucketName = 'bucket'
const LIMITS = { reconcileMs: 200 }

type Process = Awaited<ReturnType<typeof inProcess>>

interface Scene {
  readonly data: string
  readonly database: string
  readonly processes: readonly [Process, Process, Process]
  readonly clients: readonly [Client, Client, Client]
  readonly deals: readonly [DealClient, DealClient, DealClient]
  readonly db: pg.Client
  count(from: string): Promise<number>
  start(): Promise<Process>
}

/** Three processes that begin at the same time, with the token that the first gives, and a bucket. */
async function startThree(t: Test, options: Partial<GatewayOptions> = {}): Promise<Scene> {
  const database = await newDatabase()
  const data = temporaryFolder(t)
  const start = () => inProcess(t, data, { database, limits: LIMITS, ...options })
  const processes = await Promise.all([start(), start(), start()])
  const clients = [processes[0].client, processes[1].client, processes[2].client] as const
  await clients[1].call('MakeBucket', { bucketName })
  for (const client of clients) client.token = clients[0].token
  const db = new pg.Client({ connectionString: database })
  await db.connect()
  t.teardown(() => db.end())
  const count = async (from: string): Promise<number> => {
    const { rows } = await db.query(`SELECT count(*) AS count FROM ${from}`)
    return Number(rows[0].count)
  }
  const deals = [new DealClient(clients[0]), new DealClient(clients[1]), new DealClient(clients[2])] as const
  return { data, database, processes, clients, deals, db, count, start }
}

/** Locks a table against what others do, and resolves with what ends that. */
async function lockTable(t: Test, { database, count }: Scene, table: string, mode: string) {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  t.teardown(() => client.end())
  await client.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`)
  return {
    isWaitedFor: () =>
      until(
        `something waits for ${table}`,
        async () => (await count(`pg_locks WHERE NOT granted AND relation = '${table}'::regclass`)) > 0,
      ),
    open: () => client.query('ROLLBACK'),
  }
}

t.test('what one process does, the others know', { skip }, async (t) => {
  const scene = await startThree(t)
  const { clients, data, database } = scene
  const [first, second, third] = clients
  const answer = async (client: Client, key: string) => {
    const { status, text } = await client.get(bucketName, key)
    return status === 200 ? text : status
  }
  for (const size of [10, 100_000]) {
    const body = (name: string) => name.padEnd(size, '.')
    for (const [n, client] of clients.entries()) {
      t.equal((await client.put(bucketName, 'key', body(`${n}`))).status, 200)
      for (const other of clients) t.equal(await answer(other, 'key'), body(`${n}`))
    }
    await second.call('RemoveObject', { bucketName, objects: ['key'] })
    t.same(await Promise.all(clients.map((client) => answer(client, 'key'))), [404, 404, 404])
  }

  const order = { fence: fence(), writeId: 'late' }
  const late = (client: Client, key: string, body: string) =>
    client.put(bucketName, key, body, { 'x-cloud-fence': 'late', 'x-cloud-write-id': 'late' })
  t.equal((await late(first, 'late', 'none')).status, 503, 'without an order')
  await second.call('FenceUpload', { bucketName, objectName: 'late', ...order })
  t.equal((await late(first, 'other', 'none')).status, 503, 'that of another key')
  t.equal((await late(third, 'late', 'x'.repeat(50_000))).status, 200, 'the order came to another process')
  t.equal(await answer(second, 'late'), 'x'.repeat(50_000))
  t.equal((await late(first, 'late', 'again')).status, 503, 'it counts once: clients repeat the write')
  await first
    .call('FenceUpload', { bucketName, objectName: 'late', fence: fence(), writeId: 'late', expectedGeneration: '' })
    .then(
      () => t.fail('there is an object'),
      ({ data }) => t.match(data, { code: 'OtherGeneration' }),
    )

  // Of a client that is gone, though its connection is not.
  const asLeft = { 'x-cloud-fence': 'late', 'x-cloud-write-id': 'left' }
  const { hostname, port } = new URL(first.url)
  const gone = request({
    ...{ hostname, port, method: 'PUT', path: `/gateway/upload/${bucketName}/left` },
    headers: { ...first.headers(), ...asLeft, 'content-length': 50_000, expect: '100-continue' },
  })
  gone.on('error', () => {})
  gone.flushHeaders()
  await once(gone, 'continue')
  await first.call('FenceUpload', { bucketName, objectName: 'left', fence: fence(), writeId: 'left' })
  const again = await second.put(bucketName, 'left', 'x'.repeat(50_000), asLeft)
  t.equal(again.status, 200, 'an order reaches the upload that goes on')
  gone.destroy()

  const guess = async ({ url }: Client, password: string) => {
    const { accessKey } = await registry.all().then(([account]) => account as { accessKey: string })
    const call = { jsonrpc: '2.0', id: 1, method: 'web.Login', params: { username: accessKey, password } }
    const answer = await new Client(url, 'gateway').rpcRaw(JSON.stringify(call), { 'x-forwarded-for': '203.0.113.7' })
    return JSON.parse(answer.text)
  }
  const registry = await openAccountRegistry(data, database)
  t.teardown(() => registry.close())
  for (const client of [...clients, ...clients.slice(1)]) {
    t.match(await guess(client, 'wrong-password'), { error: { message: /^Authentication failed/ } })
  }
  t.match(await guess(first, 'wrong-password'), { error: { message: /^Too many log-ins/ } }, 'all count together')
})

/** The body of an object that is read slowly. */
async function openSlowly({ url, token }: Client, key: string) {
  const target = `${url}/gateway/download/${bucketName}/${encodeKey(key)}?token=${token}`
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(target, { headers: { 'user-agent': 'Mozilla/5.0 (test)' } }, resolve).on('error', reject)
  })
  return {
    status: answer.statusCode,
    async rest(): Promise<Buffer> {
      const chunks: Buffer[] = []
      for await (const chunk of answer) chunks.push(chunk)
      return Buffer.concat(chunks)
    },
  }
}

for (const place of ['a folder', 'a store'] as const) {
  t.test(`readers at one process get all of what others remove, with bodies in ${place}`, { skip }, async (t) => {
    const store = place === 'a store' ? await S3Store.start(t, 'dealgate') : undefined
    const { clients, count } = await startThree(t, { bodies: store?.bodies })
    const [first, second, third] = clients
    const large = randomBytes(12 * 1024 * 1024)
    t.equal((await second.put(bucketName, 'large', large)).status, 200)
    const readers = await Promise.all([first, second, third].map((client) => openSlowly(client, 'large')))
    t.equal((await third.put(bucketName, 'large', Buffer.alloc(100_000))).status, 200)
    await second.call('RemoveObject', { bucketName, objects: ['large'] })
    for (const reader of readers) {
      t.equal(reader.status, 200)
      t.ok((await reader.rest()).equals(large), 'a reader gets all of what it began')
    }
    t.equal(await count('dealgate_gateway.doomed'), 2, 'bodies are removed later')
  })
}

/** Asks again when a machine was so busy that another process has given up the deal. */
async function dealt(ask: () => Promise<Envelope>): Promise<Envelope> {
  const answer = await ask()
  return /given up/.test(answer.message) ? dealt(ask) : answer
}

const cidOf = ({ status, data, message }: Envelope): string => {
  if (status !== 'success') throw new Error(message)
  return data.deal_cid ?? data.dealCid ?? data.deals?.[0]?.deal_cid
}

t.test('one deal per token, of what it found', { skip }, async (t) => {
  const scene = await startThree(t)
  const { clients, deals, db, count } = scene
  const [first, second, third] = clients
  for (let round = 0; round < 5; round++) {
    await first.put(bucketName, 'key', `version ${round}`)
    const answers = await Promise.all(
      [...deals, ...deals].map((at) => dealt(() => at.deal(bucketName, 'key', {}, `token ${round}`))),
    )
    t.same([...new Set(answers.map(cidOf))], [cidOf(answers[0] as Envelope)], 'all get the same deal')
  }
  t.same([await count('dealgate_gateway.deals'), await count('dealgate_network.deals')], [5, 5])

  await first.put(bucketName, 'key', 'kept small')
  const kept = randomBytes(200_000)
  await second.put(bucketName, 'large', kept)
  // The deal has its list of files, and waits before it reads them.
  const lock = await lockTable(t, scene, 'dealgate_network.providers', 'ACCESS EXCLUSIVE')
  const pending = dealt(() => deals[0].deals(bucketName, {}, 'bucket'))
  await until('the files are listed', async () => (await count('dealgate_gateway.holds WHERE deal > 0')) > 0)
  await second.put(bucketName, 'large', Buffer.alloc(300_000))
  await third.put(bucketName, 'key', 'another')
  await third.put(bucketName, 'key', 'and another')
  await third.call('RemoveObject', { bucketName, objects: ['large'] })
  t.match(await deals[1].ask('dealprogress/bucket'), { status: 'success', data: { phase: /./ } })
  t.equal(await count('dealgate_gateway.retained'), 2, 'what the deal reads is kept, and nothing else')
  const repeated = dealt(() => deals[2].deals(bucketName, {}, 'bucket'))
  await lock.open()
  t.equal(cidOf(await repeated), cidOf(await pending), 'a repeated request waits for it')
  t.equal(await count('dealgate_gateway.retained'), 0)
  t.equal(await count('dealgate_gateway.holds'), 0)
  await first.call('MakeBucket', { bucketName: 'copy' })
  await first.put('copy', 'key', 'kept small')
  await first.put('copy', 'large', kept)
  cidOf(await deals[2].deals('copy'))
  const { rows } = await db.query(
    'SELECT key, cid FROM dealgate_gateway.deal_files WHERE deal IN (SELECT max(id) FROM dealgate_gateway.deals GROUP BY bucket) ORDER BY key',
  )
  t.equal(rows.length, 4)
  t.equal(rows[0].cid, rows[1].cid, 'the deal has the bytes that were there')
  t.equal(rows[2].cid, rows[3].cid)
})

for (const [how, signal] of [
  ['killed', 'SIGKILL'],
  ['stopped', 'SIGSTOP'],
] as const) {
  t.test(`a process that makes a deal is ${how}`, { skip }, async (t) => {
    const scene = await startThree(t)
    const { processes, clients, deals, count } = scene
    await clients[1].put(bucketName, 'key', randomBytes(100_000))
    const lock = await lockTable(t, scene, 'dealgate_network.deals', 'SHARE ROW EXCLUSIVE')
    const lost = deals[0].deal(bucketName, 'key', {}, 'token').catch((error: Error) => error)
    await lock.isWaitedFor()
    const { child } = processes[0]
    child.kill(signal)
    if (signal === 'SIGKILL') await killed(child)
    await lock.open()
    const both = await Promise.all([deals[1], deals[2]].map((at) => at.deal(bucketName, 'key', {}, 'token')))
    t.equal(cidOf(both[0] as Envelope), cidOf(both[1] as Envelope), 'others go on')
    if (signal === 'SIGSTOP') {
      child.kill('SIGCONT')
      const late = await lost
      if (!(late instanceof Error) && late.status === 'success') t.equal(cidOf(late), cidOf(both[0] as Envelope))
      const again = await deals[0].deal(bucketName, 'key', {}, 'token')
      t.equal(cidOf(again), cidOf(both[0] as Envelope), 'also the one that was stopped')
    }
    t.same([await count('dealgate_gateway.deals'), await count('dealgate_network.deals')], [1, 1], 'one deal')
    await until('nothing is held', async () => (await count('dealgate_gateway.holds')) === 0)
  })
}

t.test('a process that packs an offline deal is killed', { skip }, async (t) => {
  const scene = await startThree(t)
  const { data, processes, clients, deals, count, start } = scene
  await clients[1].put(bucketName, 'key', randomBytes(100_000))
  const post = (at: DealClient) => at.ask(`offlinedeals/${bucketName}`, PRIVATE, { 'x-cloud-client-token': 'offline' })
  const lock = await lockTable(t, scene, 'dealgate_gateway.offline_cars', 'SHARE ROW EXCLUSIVE')
  const lost = post(deals[0]).catch((error: Error) => error)
  await lock.isWaitedFor()
  await killed(processes[0].child)
  await lost
  await lock.open()
  const answers = await Promise.all([post(deals[1]), post(deals[2])])
  const uuids = answers.map(({ status, data, message }) => {
    if (status !== 'success') throw new Error(message)
    return data.deals.data.uuid as string
  })
  t.equal(uuids[0], uuids[1], 'one task')
  t.same(readdirSync(join(data, 'gateway', 'offline')), [uuids[0]], 'and nothing of the one before')
  const tables = ['gateway.offline_tasks', 'gateway.offline_cars', 'gateway.deals', 'platform.tasks']
  for (const table of tables) t.equal(await count(`dealgate_${table}`), 1, table)
  const { client } = await start()
  const again = await post(new DealClient(client))
  t.equal(again.data.deals.data.uuid, uuids[0])
})
