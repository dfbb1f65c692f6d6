import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { interleaved, measure } from '../cases/measure.js'
import { costOf } from '../report/gate.js'
import { makeBucket, startProxy } from '../servers/dealgate.js'
import { dealgate } from '../servers/start.js'
import type { Operation, Subject } from '../servers/subject.js'
import { median } from '../usage/statistics.js'
import { requestsOf } from './jobs.js'
import { type Found, type GoalsContext, rounded, rowOf } from './part.js'
import { type Begun, starts } from './start.js'

const COUNTS = { GET: 4000, HEAD: 4000, PUT: 1500 } as const satisfies Partial<Record<Operation, number>>
const OPERATIONS = ['GET', 'HEAD', 'PUT'] as const
const CONNECTIONS = 16
/** A start takes seconds. */
const MOST_STARTS = 3

/** The same program on each version of Node.js: small objects and starts. */
export async function nodes({ folder, load, rounds, nodes: others, progress }: GoalsContext): Promise<Found> {
  const programs = new Map([process.execPath, ...others].map((node) => [nameOf(node), node]))
  progress(`on ${[...programs.keys()].join(', ')}`)
  const samples = new Map(OPERATIONS.map((operation) => [operation, new Map<string, number[]>()]))
  const servers: Subject[] = []
  try {
    for (const [name, node] of programs) {
      const server = await startProxy(join(folder, 'nodes', name), undefined, { node })
      servers.push(dealgate(name, server, []))
      await makeBucket(server, 'bench')
    }
    const once = (subject: Subject, operation: keyof typeof COUNTS) => {
      const count = COUNTS[operation]
      return measure(load, subject, requestsOf(subject, operation, { connections: CONNECTIONS, count }), count)
    }
    for (const subject of servers) for (const operation of OPERATIONS.toReversed()) await once(subject, operation)
    await interleaved(rounds, servers, async (subject) => {
      for (const operation of OPERATIONS) {
        const of = samples.get(operation)
        const cost = costOf(await once(subject, operation)) * 1e6
        of?.set(subject.name, [...(of.get(subject.name) ?? []), cost])
      }
    })
  } finally {
    for (const { processes } of servers) for (const { program } of processes) await program.stop()
  }
  const begun = new Map<string, readonly Begun[]>()
  for (const [name, node] of programs) {
    progress(`starts on ${name}`)
    begun.set(name, await starts(join(folder, 'nodes', `${name}-start`), load, node, Math.min(rounds, MOST_STARTS)))
  }
  const row = (name: string, of: (begun: Begun) => number) => ({
    ...({ part: 'nodes', name, unit: 'ms', ratios: {} } as const),
    values: Object.fromEntries([...begun].map(([node, all]) => [node, rounded(median(all.map(of)))])),
  })
  return {
    rows: [
      ...OPERATIONS.map((operation) => {
        const described = { part: 'nodes', name: `${operation}, CPU`, unit: 'µs' } as const
        return rowOf(described, samples.get(operation) ?? new Map())
      }),
      row('from npm start to ready', (one) => one.readyMs),
      row('CPU of that', (one) => one.cpuMs),
      row('CPU of the first 2,000 GETs', (one) => one.firstMs),
    ],
  }
}

function nameOf(node: string): string {
  return `Node.js ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1)}`
}
