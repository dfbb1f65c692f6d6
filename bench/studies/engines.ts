import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { postgres } from '../../test/src/state/servers.js'
import { send } from '../../test/support/sign/send.js'
import { interleaved } from '../cases/measure.js'
import { Load } from '../load/load.js'
import { type Gateway, startGateway } from '../servers/dealgate.js'
import { bearerOf, gatewayRequests, rpc } from '../servers/gateway-requests.js'
import { startMinio } from '../servers/minio.js'
import { LISTED, type Operation } from '../servers/subject.js'
import { cpuSeconds } from '../usage/usage.js'
import { median } from './measure.js'

const CONNECTIONS = 16
const OWN = 'gateway'
const MINIO = '.ci/real-gateway/minio'

interface Case {
  readonly name: string
  readonly operation: Operation
  readonly size: number
  readonly count: number
}

/** Objects of each size that a round stores, and then reads in turn and removes. */
const OBJECTS: Readonly<Record<number, number>> = { 1024: 1000, 100000: 300 }

const CASES: readonly Case[] = [
  { name: 'PUT 1 KiB', operation: 'PUT', size: 1024, count: 1000 },
  { name: 'GET 1 KiB', operation: 'GET', size: 1024, count: 2000 },
  { name: 'DELETE', operation: 'DELETE', size: 1024, count: 1000 },
  { name: 'PUT 100 kB', operation: 'PUT', size: 100_000, count: 300 },
  { name: 'GET 100 kB', operation: 'GET', size: 100_000, count: 600 },
  { name: `${LISTED} keys`, operation: 'LIST', size: 1024, count: 100 },
]

/** Keys of the bucket whose pages are timed, and how many of them. */
const MANY = 1_000_000
const PAGES = 60

/** A service over its engines, as one process or several. */
interface Engine {
  readonly name: string
  readonly gateways: readonly Gateway[]
  /** Process ids of the programs behind it. */
  readonly behind: ReadonlyMap<string, number>
  /** Of the bucket with many keys. */
  readonly database?: string
}

interface Run {
  readonly rate: number
  /** Seconds of CPU for each operation, by program. */
  readonly cpu: ReadonlyMap<string, number>
}

/**
 * The embedded gateway over each pair of engines, without a proxy before it, in interleaved rounds. MinIO is the S3
 * store, if it was built. PostgreSQL syncs what it commits, as SQLite does.
 */
export async function engines(rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const load = [new Load(), new Load()]
  const ends: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    const all = await startAll(folder, ends)
    for (const engine of all) await prepare(load[0] as Load, engine)
    const runs = new Map<string, Run[]>()
    const round = async (engine: Engine, number: number): Promise<void> => {
      for (const one of CASES) {
        const run = await runCase(load, engine, one, number)
        // The first round compiles the code.
        if (number > 0) runs.set(`${one.name} ${engine.name}`, [...(runs.get(`${one.name} ${engine.name}`) ?? []), run])
      }
    }
    await interleaved(rounds + 1, all, round)
    for (const { name } of CASES) for (const engine of all) tell(name, engine, runs.get(`${name} ${engine.name}`) ?? [])
    for (const { gateways, database } of all)
      if (database !== undefined) await pagesOfMany(gateways[0] as Gateway, database)
  } finally {
    for (const one of load) one.stop()
    for (const end of ends.reverse()) await end().catch(() => {})
  }
}

async function startAll(folder: string, ends: (() => Promise<unknown>)[]): Promise<Engine[]> {
  // Each service has at most 64 of them.
  const server = await postgres.start(['-c', 'max_connections=400'])
  ends.push(() => server.stop())
  const newDatabase = async (name: string): Promise<string> => {
    await ask(server.url, `CREATE DATABASE ${name}`)
    return server.url.replace(/\/postgres$/, `/${name}`)
  }
  const start = async (data: string, ...options: string[]): Promise<Gateway> => {
    await mkdir(join(folder, data), { recursive: true })
    const gateway = await startGateway(join(folder, data), 'none', options)
    ends.push(() => gateway.program.stop())
    return gateway
  }
  const behind = new Map([['PostgreSQL', server.pid]])
  const database = await newDatabase('folder')
  const engines: Engine[] = [
    { name: 'SQLite and folder', gateways: [await start('sqlite')], behind: new Map() },
    { name: 'PostgreSQL and folder', gateways: [await start('postgres', '--database', database)], behind, database },
  ]
  const shared = ['--database', await newDatabase('shared')]
  const first = await start('shared', ...shared)
  // A secret key is printed once.
  const second = { ...(await start('shared', ...shared)), secretKey: first.secretKey }
  engines.push({ name: 'PostgreSQL and folder, two processes', gateways: [first, second], behind })
  if (!existsSync(MINIO)) return engines
  await mkdir(join(folder, 'store'))
  const { program, url, accessKey, secretKey } = await startMinio(join(folder, 'store'), MINIO)
  ends.push(() => program.stop())
  await send({ endpoint: url, region: 'us-east-1', accessKey, secretKey }, { method: 'PUT', target: '/bodies' })
  // Of the services, which inherit them.
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey })
  const options = ['--database', await newDatabase('store'), '--bodies', `s3://bodies?endpoint=${url}`]
  const store = new Map([...behind, ['store', program.pid]])
  return [...engines, { name: 'PostgreSQL and S3', gateways: [await start('s3', ...options)], behind: store }]
}

async function prepare(load: Load, { gateways: [gateway] }: Engine): Promise<void> {
  if (gateway === undefined) return
  const bearer = await bearerOf(gateway)
  for (const bucketName of ['bench', 'listed', 'many']) await rpc(gateway, 'web.MakeBucket', { bucketName }, bearer)
  const paths = Array.from({ length: LISTED }, (_, i) => `listed/folder-${i % 10}/an-object-of-the-listing-${i}.txt`)
  await shoot(load, gateway, 'PUT', paths, 1024, LISTED)
}

async function runCase(loads: readonly Load[], { gateways, behind }: Engine, one: Case, round: number): Promise<Run> {
  const { operation, size, count } = one
  const paths =
    operation === 'LIST'
      ? ['listed']
      : Array.from({ length: OBJECTS[size] ?? 0 }, (_, i) => `bench/${size}-${round}/${i}`)
  const used = async (): Promise<Map<string, number>> => {
    const own = await Promise.all(gateways.map(({ program }) => program.usage()))
    const others = [...behind].map(async ([name, pid]) => [name, await cpuSeconds(pid)] as const)
    return new Map([[OWN, own.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)], ...(await Promise.all(others))])
  }
  const before = await used()
  const began = performance.now()
  const part = count / gateways.length
  const shares = gateways.map((gateway, i) => {
    const share = Math.ceil(paths.length / gateways.length)
    const own = paths.length === 1 ? paths : paths.slice(i * share, (i + 1) * share)
    return shoot(loads[i] as Load, gateway, operation, own, size, part)
  })
  await Promise.all(shares)
  const seconds = (performance.now() - began) / 1000
  const after = await used()
  const cpu = [...after].map(([name, now]) => [name, (now - (before.get(name) ?? 0)) / count] as const)
  return { rate: count / seconds, cpu: new Map(cpu) }
}

async function shoot(
  load: Load,
  gateway: Gateway,
  operation: Operation,
  paths: readonly string[],
  size: number,
  count: number,
): Promise<void> {
  const requests = gatewayRequests(gateway.port, gateway)
  await requests.prepare()
  await load.run({
    requests: {
      host: '127.0.0.1',
      port: gateway.port,
      connections: CONNECTIONS,
      shots: paths.map((path) => requests.shot(operation, path, size)),
      count,
      size,
      sends: operation === 'PUT',
      expected: requests.expected(operation),
    },
  })
}

function tell(name: string, { name: engine }: Engine, runs: readonly Run[]): void {
  const rate = median(runs.map((one) => one.rate)).toFixed(0)
  const programs = [...(runs[0]?.cpu.keys() ?? [])].map(
    (program) => `${program} ${(median(runs.map(({ cpu }) => cpu.get(program) ?? 0)) * 1000).toFixed(2)}`,
  )
  console.log(`${name.padEnd(10)}  ${engine.padEnd(38)} ${rate.padStart(6)}/s  CPU ms: ${programs.join(', ')}`)
}

/** Times of pages of a bucket with many keys, over one connection: the first one, and any. */
async function pagesOfMany(gateway: Gateway, database: string): Promise<void> {
  await ask(
    database,
    `INSERT INTO dealgate_gateway.objects (bucket, key, size, modified, generation, etag, content_type, body_at)
     SELECT (SELECT id FROM dealgate_gateway.buckets WHERE name = 'many'),
       convert_to('folder-' || n % 1000 || '/an-object-of-the-listing-' || lpad(n::text, 7, '0') || '.txt', 'UTF8'), 1024,
       '2026-01-01T00:00:00.000000000Z', lpad(to_hex(n), 32, '0'), md5(n::text), 'text/plain', 1
     FROM generate_series(1, ${MANY}) AS n`,
  )
  await ask(database, 'VACUUM ANALYZE dealgate_gateway.objects')
  const [row] = await ask(database, `SELECT pg_total_relation_size('dealgate_gateway.objects') / ${MANY} AS bytes`)
  console.log(`a row of an object, with its indexes: ${row?.bytes} bytes`)
  const bearer = await bearerOf(gateway)
  const page = async (marker: string, delimiter = ''): Promise<number> => {
    const began = performance.now()
    const asked = { bucketName: 'many', prefix: '', marker, maxKeys: LISTED, delimiter }
    await rpc(gateway, 'web.ListObjects', asked, bearer)
    return performance.now() - began
  }
  const some = async (next: (n: number) => Promise<number>): Promise<string> => {
    const times: number[] = []
    for (let n = 0; n < PAGES; n++) times.push(await next(n))
    return `${median(times).toFixed(1)} ms, ${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)}`
  }
  await some(() => page(''))
  console.log(`${MANY} keys in PostgreSQL, a page of ${LISTED}: first ${await some(() => page(''))}`)
  const any = (n: number) => `folder-${(n * 7919) % 1000}/an-object-of-the-listing-0${(n * 104_729) % 1_000_000}`
  console.log(`any ${await some((n) => page(any(n)))}`)
  console.log(`of ${LISTED} folders ${await some(() => page('', '/'))}`)
}

async function ask(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(sql)
  await client.end()
  return rows
}
