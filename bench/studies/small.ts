import http from 'node:http'
import { inTurn } from './large.js'
import { type Cost, measure, type Pair, report } from './measure.js'
import type { Endpoint, Target } from './target.js'

export const CONNECTIONS = 16
const KEYS = 200
const SECONDS = 3
const BODY = Buffer.alloc(1024, 'x')

export interface Shot {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
}

/** Operations a second on objects of 1 KiB over 16 connections, proxy and gateway in turn. */
export async function small(target: Target, rounds: number): Promise<void> {
  const agent = new http.Agent({ keepAlive: true })
  for (const shot of signed(target, 'PUT')) await fire(agent, target.proxy, shot)
  agent.destroy()
  for (const method of ['PUT', 'GET', 'HEAD']) {
    const pair: Pair = { proxy: [], direct: [] }
    const done = new Map<Cost, number>()
    const run = async (costs: Cost[], to: Endpoint, shots: readonly Shot[]) => {
      let count = 0
      const cost = await measure(target, async () => {
        count = await hammer(to, shots)
      })
      costs.push(cost)
      done.set(cost, count)
    }
    for (let round = 0; round < rounds; round++) {
      await inTurn(round, [
        async () => run(pair.proxy, target.proxy, signed(target, method)),
        async () => run(pair.direct, target.gateway, await plain(target, method)),
      ])
    }
    report(`${method} 1 KiB, ${CONNECTIONS} connections`, 'op', pair, (cost) => done.get(cost) ?? 0, 10_000)
  }
}

function signed(target: Target, method: string): Shot[] {
  return keys().map((key) => ({ method, path: target.s3(method, key), headers: {} }))
}

export async function plain(target: Target, method: string): Promise<Shot[]> {
  const { path, headers } = await target.direct(method, '')
  return keys().map((key) => ({ method, path: path.replace('/bench/', `/bench/${key}`), headers }))
}

export function keys(): string[] {
  return Array.from({ length: KEYS }, (_, i) => `small/${i}`)
}

/** Sends them again and again for so many seconds. Resolves to the number of operations. */
export async function hammer(to: Endpoint, shots: readonly Shot[], seconds = SECONDS): Promise<number> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const end = performance.now() + seconds * 1000
  let done = 0
  async function worker(first: number): Promise<void> {
    for (let i = first; performance.now() < end; i++) {
      await fire(agent, to, shots[i % shots.length] as Shot)
      done++
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => worker(i * 7)))
  agent.destroy()
  return done
}

export function fire(agent: http.Agent, to: Endpoint, shot: Shot): Promise<void> {
  return new Promise((resolve, reject) => {
    const body = shot.method === 'PUT' ? BODY : undefined
    const headers = body ? { ...shot.headers, 'content-length': body.length } : shot.headers
    const request = http.request(
      { agent, host: to.host, port: to.port, method: shot.method, path: shot.path, headers },
      (response) => {
        response.resume()
        response.once('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`${shot.method}: status ${response.statusCode}`)),
        )
      },
    )
    request.once('error', reject)
    request.end(body)
  })
}
