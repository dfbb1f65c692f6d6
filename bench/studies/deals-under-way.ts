import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Endpoint, sign } from '../../test/suites/sign.js'
import { sha256 } from '../../test/support/content/content.js'
import type { Job, Shot } from '../load/job.js'
import type { Load } from '../load/load.js'
import type { Curve } from '../report/curves.js'
import { makeBucket, startProxy } from '../servers/dealgate.js'
import { headOf } from '../servers/s3-requests.js'
import { requests } from './requests.js'

const UNDER_WAY = [1, 10, 100, 1000]
const CONNECTIONS = 16
/** Requests of a point. */
const COUNT = 2000
const ASKED = 500
/** Long enough for a deal to stay under way, and for the server to ask for the states of all deals. */
const EPOCH_SECONDS = '3600'
const ASKED_SECONDS = 10
const TERMS = JSON.stringify({
  MinerId: 't01000',
  Price: '0.0000000005',
  ConfirmPrice: true,
  DurationEpochs: 518400,
  VerifiedDeal: false,
  FastRetrieval: true,
})

/** µs of CPU while so many deals of 1 KiB are under way: of requests, of one more deal, of waiting. */
export async function dealsUnderWay(load: Load, folder: string): Promise<Curve[]> {
  await mkdir(folder)
  const config = join(folder, 'config.json')
  const options = { statusIntervalSeconds: ASKED_SECONDS, maxSpendPerDay: 'none' }
  await writeFile(config, JSON.stringify({ plugins: [{ use: 'deal', options }] }))
  const further = ['--network-epoch-seconds', EPOCH_SECONDS, '--config', config]
  const server = await startProxy(folder, undefined, { further })
  const cpuOf = async (run: () => Promise<unknown>) => {
    const before = await server.program.usage()
    await run()
    return ((await server.program.usage()).cpuSeconds - before.cpuSeconds) * 1e6
  }
  const many = { connections: CONNECTIONS, count: COUNT, bucket: 'bench' }
  const cases: readonly (readonly [name: string, each: number, run: () => Promise<unknown>])[] = [
    ['PUT of 1 KiB', COUNT, () => load.run(requests(server, 'PUT', many))],
    ['GET of 1 KiB', COUNT, () => load.run(requests(server, 'GET', many))],
    ['GET ?x-deal=', ASKED, () => load.run(ofDeals(server, 'GET', 0, 1, ASKED))],
    ['a second of waiting', ASKED_SECONDS, () => sleep(ASKED_SECONDS * 1000)],
  ]
  const curves = new Map<string, [number, number][]>()
  const add = (name: string, at: number, cpu: number) => {
    curves.set(name, [...(curves.get(name) ?? []), [at, Math.max(1, cpu)]])
    console.log(`deals ${name} ${at}: ${cpu.toFixed(0)} µs`)
  }
  try {
    for (const bucket of ['bench', 'deals']) await makeBucket(server, bucket)
    const objects = Array.from({ length: Math.max(...UNDER_WAY) }, (_, i) => `deals/${i}`)
    await load.run(requests(server, 'PUT', { ...many, paths: objects, count: objects.length }))
    let made = 0
    for (const n of UNDER_WAY) {
      const cpu = await cpuOf(() => load.run(ofDeals(server, 'POST', made, n, n - made)))
      // The first one compiles.
      if (made > 0) add('one more deal', n, cpu / (n - made))
      // Once without a look at the clock, so that everything is compiled.
      else for (const [, , run] of cases.slice(0, -1)) await run()
      for (const [name, each, run] of cases) add(name, n, (await cpuOf(run)) / each)
      made = n
    }
  } finally {
    await server.program.stop()
  }
  return [...curves].map(([name, points]) => ({ name, points }))
}

/** Orders a deal of each object, and waits for its end; or asks for the deals of objects in turn. */
function ofDeals(server: Endpoint, method: 'GET' | 'POST', from: number, to: number, count: number): Job {
  const text = method === 'POST' ? TERMS : ''
  const shots = Array.from({ length: to - from }, (_, i): Shot => {
    const target = `/deals/${from + i}?x-deal=`
    const wanted = { 'content-type': 'application/json', prefer: 'wait=60' }
    const { headers } = sign(server, { method, target, payloadHash: sha256(text), ...(text && { headers: wanted }) })
    const length = { 'content-length': String(text.length) }
    return { path: target, text, head: headOf(method, target, { ...headers, ...(text && length) }) }
  })
  const { hostname: host, port } = new URL(server.endpoint)
  const expected = { status: 200 }
  return {
    requests: { host, port: Number(port), connections: CONNECTIONS, shots, count, size: 0, sends: false, expected },
  }
}
