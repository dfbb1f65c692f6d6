import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgres, type StateServer } from '../../test/src/state/servers.js'
import { interleaved } from '../cases/measure.js'
import { Load } from '../load/load.js'
import { type DealgateServer, type Gateway, makeBucket, startGateway, startProxy } from '../servers/dealgate.js'
import { s3Requests } from '../servers/s3-requests.js'
import { median } from './measure.js'

const WORKERS = [1, 2, 4]
/** Processes that run the services, too, over PostgreSQL. */
const WITH_SERVICES = [1, 2]
const CONNECTIONS = 32
const SIZE = 1024
const OBJECTS = 100
/** Operations of a run: fewer where PostgreSQL syncs each PUT. */
const COUNT = 3000
const COUNT_WITH_SERVICES = 1000
const OPERATIONS = ['GET', 'PUT'] as const

type Operation = (typeof OPERATIONS)[number]

/**
 * The same server with more and more processes, in front of one gateway, and with the services over PostgreSQL, if it
 * is installed: operations a second, and CPU of all its processes.
 */
export async function workers(quirks: string, rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const load = new Load()
  const gateway = await startGateway(folder, quirks)
  const servers: Server[] = []
  const databases: StateServer[] = []
  try {
    for (const count of WORKERS) servers.push(await startServer(join(folder, String(count)), gateway, count))
    const [first] = servers
    if (first) await makeBucket(first.server, 'bench')
    for (const count of postgres.skip === false ? WITH_SERVICES : []) {
      const database = await postgres.start()
      databases.push(database)
      const data = join(folder, `services-${count}`)
      const one = await startServer(data, undefined, count, ['--database', database.url])
      servers.push(one)
      await makeBucket(one.server, 'bench')
    }
    for (const each of servers) await warm(load, each)
    await interleaved(rounds, servers, async (each) => {
      for (const operation of OPERATIONS) each.runs[operation].push(await run(load, each, operation))
    })
    for (const { name, runs } of servers) for (const operation of OPERATIONS) tell(name, operation, runs[operation])
  } finally {
    for (const { server } of servers) await server.program.stop()
    await gateway.program.stop()
    for (const database of databases) await database.stop()
    load.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

interface Run {
  readonly rate: number
  readonly cpu: number
}

interface Server {
  readonly name: string
  /** Processes. */
  readonly count: number
  readonly operations: number
  readonly server: DealgateServer
  readonly runs: Record<Operation, Run[]>
}

async function startServer(
  folder: string,
  gateway: Gateway | undefined,
  count: number,
  further: readonly string[] = [],
): Promise<Server> {
  const server = await startProxy(folder, gateway, { workers: count, further })
  const name = `${count} worker${count > 1 ? 's' : ''}${gateway ? '' : ' with services'}`
  const operations = gateway ? COUNT : COUNT_WITH_SERVICES
  return { name, count, operations, server, runs: { GET: [], PUT: [] } }
}

/** Each process compiles its code for itself. */
async function warm(load: Load, each: Server): Promise<void> {
  for (let i = 0; i < each.count; i++) for (const operation of OPERATIONS.toReversed()) await run(load, each, operation)
}

async function run(load: Load, { server, operations }: Server, operation: Operation): Promise<Run> {
  const requests = s3Requests(server)
  const paths = Array.from({ length: OBJECTS }, (_, i) => `bench/small/${i}`)
  const before = (await server.program.usage()).cpuSeconds
  const began = performance.now()
  await load.run({
    requests: {
      host: '127.0.0.1',
      port: server.port,
      connections: CONNECTIONS,
      shots: paths.map((path) => requests.shot(operation, path, SIZE)),
      count: operations,
      size: SIZE,
      sends: operation === 'PUT',
      expected: requests.expected(operation),
    },
  })
  const seconds = (performance.now() - began) / 1000
  return {
    rate: operations / seconds,
    cpu: ((await server.program.usage()).cpuSeconds - before) / operations,
  }
}

function tell(name: string, operation: Operation, runs: readonly Run[]): void {
  const rate = median(runs.map((one) => one.rate)).toFixed(0)
  const cpu = (median(runs.map((one) => one.cpu)) * 1e6).toFixed(0)
  console.log(`${name.padEnd(23)} ${operation} 1 KiB  ${rate.padStart(6)}/s  ${cpu.padStart(5)} µs CPU each`)
}
