import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Load } from '../load/load.js'
import { type DealgateServer, makeBucket, startProxy } from '../servers/dealgate.js'
import { median } from './measure.js'
import { requests } from './requests.js'

const OPERATIONS = ['GET', 'PUT'] as const
/** Requests between two looks at the clock. */
const STEP = 100
const FIRST_MS = 1000
/** Requests until the code of a server is compiled, and of a measured run after them. */
const WARMING = 8000
const WARM = 2000

/**
 * The first second of a server with its embedded gateway after it is ready, in parts of the same server when it is
 * warm: requests a second, and CPU of each. Each round is a start.
 */
export async function cold(rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const load = new Load()
  try {
    // A start prints the secret key only when it makes one.
    let secretKey = ''
    await withServer(folder, async (server) => {
      secretKey = server.secretKey
      await makeBucket(server, 'bench')
      // The load process compiles its code, too.
      for (const operation of OPERATIONS.toReversed()) await run(load, server, operation, WARM)
    })
    for (const operation of OPERATIONS) {
      const ratios: { rate: number; cpu: number }[] = []
      for (let round = 0; round < rounds; round++)
        await withServer(folder, async (started) => {
          const server = { ...started, secretKey }
          const first = await during(server, async () => {
            let done = 0
            for (const began = performance.now(); performance.now() - began < FIRST_MS; done += STEP)
              await run(load, server, operation, STEP)
            return done
          })
          await run(load, server, operation, WARMING)
          const warm = await during(server, () => run(load, server, operation, WARM))
          ratios.push({ rate: first.rate / warm.rate, cpu: first.cpu / warm.cpu })
          const µs = (cpu: number) => `${(cpu * 1e6).toFixed(0)} µs`
          console.log(
            `${operation} first ${first.rate.toFixed(0)}/s ${µs(first.cpu)}, warm ${warm.rate.toFixed(0)}/s ${µs(warm.cpu)}`,
          )
        })
      const of = (name: 'rate' | 'cpu') => median(ratios.map((ratio) => ratio[name])).toFixed(2)
      console.log(`${operation} 1 KiB, first second in parts of warm: rate ${of('rate')}, CPU of each ${of('cpu')}`)
    }
  } finally {
    load.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function withServer(folder: string, use: (server: DealgateServer) => Promise<void>): Promise<void> {
  const server = await startProxy(folder, undefined)
  try {
    await use(server)
  } finally {
    await server.program.stop()
  }
}

async function run(load: Load, server: DealgateServer, operation: 'GET' | 'PUT', count: number): Promise<number> {
  await load.run(requests(server, operation, { connections: 16, count }))
  return count
}

async function during(server: DealgateServer, work: () => Promise<number>): Promise<{ rate: number; cpu: number }> {
  const before = (await server.program.usage()).cpuSeconds
  const began = performance.now()
  const done = await work()
  const seconds = (performance.now() - began) / 1000
  return { rate: done / seconds, cpu: ((await server.program.usage()).cpuSeconds - before) / done }
}
