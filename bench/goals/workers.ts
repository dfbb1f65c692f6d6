import { join } from 'node:path'
import { interleaved, measure } from '../cases/measure.js'
import { costOf } from '../report/gate.js'
import { OWN } from '../results/runs.js'
import { makeBucket, startGateway, startProxy } from '../servers/dealgate.js'
import { dealgate } from '../servers/start.js'
import type { Operation } from '../servers/subject.js'
import { requestsOf } from './jobs.js'
import { type Found, type GoalsContext, rowOf } from './part.js'

const COUNT = 3000
const CONNECTIONS = 32
const OPERATIONS = ['GET', 'PUT'] as const satisfies readonly Operation[]

const ONE = 'one process'
const GOALS = { GET: 1.15, PUT: 1.3 }

/** Two workers beside one process, in front of one gateway; the supervisor counts. */
export async function workers({ folder, load, rounds, progress }: GoalsContext): Promise<Found> {
  progress('workers')
  const place = join(folder, 'workers')
  const gateway = await startGateway(place, 'none')
  const servers = []
  try {
    // Both are measured from outside, because the figures of a supervisor are those of its workers, too.
    for (const [name, count] of Object.entries({ [OWN]: 2, [ONE]: 1 })) {
      const server = await startProxy(join(place, String(count)), gateway, { workers: count })
      servers.push(dealgate(name, server, []))
    }
    const [first] = servers
    if (first) await makeBucket(first.server, 'bench')
    const many = { connections: CONNECTIONS, count: COUNT }
    for (const subject of servers)
      for (const operation of ['PUT', 'GET', 'PUT', 'GET'] as const)
        await load.run(requestsOf(subject, operation, many))
    const samples = new Map(OPERATIONS.map((operation) => [operation, new Map<string, number[]>()]))
    await interleaved(rounds, servers, async (subject) => {
      for (const operation of OPERATIONS) {
        const run = await measure(load, subject, requestsOf(subject, operation, many), COUNT)
        const of = samples.get(operation)
        of?.set(subject.name, [...(of.get(subject.name) ?? []), costOf(run) * 1e6])
      }
    })
    return {
      rows: OPERATIONS.map((operation) => {
        const goal = { of: ONE, atMost: GOALS[operation] }
        return rowOf(
          { part: 'workers', name: `${operation} 1 KiB`, unit: 'µs', goal },
          samples.get(operation) ?? new Map(),
        )
      }),
    }
  } finally {
    for (const { processes } of servers) for (const { program } of processes) await program.stop()
    await gateway.program.stop()
  }
}
