import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Load } from '../load/load.js'
import { type DealgateServer, type Gateway, makeBucket, startGateway, startProxy } from '../servers/dealgate.js'
import type { Operation } from '../servers/subject.js'
import { requests } from './requests.js'
import { forgetPeak, IDLE_SECONDS, memoryOf, mib } from './rss.js'

const CONNECTIONS = 16
/** Of the load of small objects, as `npm run bench -- --only small` does it. */
const LOAD: readonly (readonly [Operation, count: number])[] = [
  ['PUT', 6000],
  ['GET', 12_000],
  ['HEAD', 12_000],
  ['LIST', 150],
  ['DELETE', 6000],
]
const KEYS = 1000
/** Requests of a turn of the steady load, half of them PUT. */
const TURN = 500
const TURN_MS = 1000
/** Turns between two lines. */
const SHOWN = 60

/**
 * Resident set of a server with its embedded gateway, and of a proxy alone: idle, after a load of small objects, and
 * during a steady one of 500 requests a second for so many minutes.
 */
export async function memory(quirks: string, minutes: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const load = new Load()
  let gateway: Gateway | undefined
  try {
    await one('all in one', load, await startProxy(folder, undefined), minutes)
    gateway = await startGateway(folder, quirks)
    await one('proxy alone', load, await startProxy(folder, gateway), minutes)
  } finally {
    load.stop()
    await gateway?.program.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function one(name: string, load: Load, server: DealgateServer, minutes: number): Promise<void> {
  const tell = async (when: string) => {
    const { now, peak } = await memoryOf(server)
    console.log(`${name}, ${when}: ${mib(now)} MiB, highest ${mib(peak)} MiB`)
  }
  const run = (operation: Operation, bucket: string, count: number) =>
    load.run(requests(server, operation, { connections: CONNECTIONS, count, keys: KEYS, bucket }))
  try {
    await sleep(IDLE_SECONDS * 1000)
    await tell(`idle for ${IDLE_SECONDS} s`)
    for (const bucket of ['bench', 'listed']) await makeBucket(server, bucket)
    await run('PUT', 'listed', KEYS)
    await forgetPeak(server)
    for (const [operation, count] of LOAD) {
      if (operation === 'LIST')
        await load.run(requests(server, operation, { connections: CONNECTIONS, count, paths: ['listed'] }))
      else await run(operation, 'bench', count)
    }
    await tell('after the load')
    await sleep(IDLE_SECONDS * 1000)
    await tell(`idle for ${IDLE_SECONDS} s again`)
    for (let turn = 1; turn <= minutes * 60; turn++) {
      const next = sleep(TURN_MS)
      await run('PUT', 'bench', TURN / 2)
      await run('GET', 'bench', TURN / 2)
      await next
      if (turn % SHOWN === 0) await tell(`${turn} s of a steady load`)
    }
  } finally {
    await server.program.stop()
  }
}
