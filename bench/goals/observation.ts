import { join } from 'node:path'
import { interleaved, measure } from '../cases/measure.js'
import { costOf } from '../report/gate.js'
import { OWN } from '../results/runs.js'
import { makeBucket, startProxy } from '../servers/dealgate.js'
import { fileBeside } from '../servers/program.js'
import { dealgate } from '../servers/start.js'
import type { Subject } from '../servers/subject.js'
import { requestsOf } from './jobs.js'
import { type Found, type GoalsContext, rowOf } from './part.js'

const COUNT = 4000
const MANY = { connections: 16, count: COUNT }
const SDK = fileBeside(import.meta.url, './tracing-sdk.js')

/**
 * The same server without a log of requests, with one, with one in S3's format, and with a trace of each request.
 * Requests are always counted for metrics.
 */
export async function observation({ folder, load, rounds, progress }: GoalsContext): Promise<Found> {
  progress('the access log and traces, on and off')
  const at = (name: string) => join(folder, 'observation', name)
  const log = ['--access-log', 'on', '--log-level', 'info']
  const file = ['--access-log-file', join(folder, 'access.log')]
  const forms: Readonly<Record<string, Parameters<typeof startProxy>[2]>> = {
    [OWN]: {},
    'access log': { further: log, quiet: true },
    'access log in a file': { further: [...log, ...file], quiet: true },
    "the same in S3's format": { further: [...log, ...file, '--access-log-format', 's3'], quiet: true },
    traces: { nodeOptions: ['--import', SDK] },
  }
  const servers: Subject[] = []
  try {
    for (const [name, options] of Object.entries(forms)) {
      const server = await startProxy(at(name.replaceAll(/\W/g, '-')), undefined, options)
      servers.push(dealgate(name, server, []))
      await makeBucket(server, 'bench')
    }
    const samples = new Map<string, number[]>(servers.map(({ name }) => [name, []]))
    for (const subject of servers) {
      await load.run(requestsOf(subject, 'PUT', { ...MANY, count: 100 }))
      await load.run(requestsOf(subject, 'GET', MANY))
    }
    await interleaved(rounds, servers, async (subject) => {
      const run = await measure(load, subject, requestsOf(subject, 'GET', MANY), COUNT)
      samples.get(subject.name)?.push(costOf(run) * 1e6)
    })
    // The values are to be compared, not the ratio of a server that does less.
    return { rows: [{ ...rowOf({ part: 'observation', name: 'GET 1 KiB', unit: 'µs' }, samples), ratios: {} }] }
  } finally {
    for (const { processes } of servers) for (const { program } of processes) await program.stop()
  }
}
