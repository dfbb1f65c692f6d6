import http from 'node:http'
import { report } from './report.js'
import type { Endpoint, Target } from './target.js'

const CONNECTIONS = 16
const KEYS = 200
const SECONDS = 3
const BODY = Buffer.alloc(1024, 'x')

interface Shot {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
}

/** Operations a second on objects of 1 KiB over 16 connections, proxy and gateway in turn. */
export async function small(target: Target, rounds: number): Promise<void> {
  for (const method of ['PUT', 'GET', 'HEAD']) {
    const proxy: number[] = []
    const direct: number[] = []
    for (let round = 0; round < rounds; round++) {
      const signed = keys().map((key): Shot => ({ method, path: target.s3(method, key), headers: {} }))
      proxy.push(await hammer(target.proxy, signed))
      const plain = await target.direct(method, '')
      const own = keys().map(
        (key): Shot => ({ method, path: plain.path.replace('/bench/', `/bench/${key}`), headers: plain.headers }),
      )
      direct.push(await hammer(target.gateway, own))
    }
    report(`${method} 1 KiB, ${CONNECTIONS} connections`, 'op/s', proxy, direct)
  }
}

function keys(): string[] {
  return Array.from({ length: KEYS }, (_, i) => `small/${i}`)
}

async function hammer(to: Endpoint, shots: readonly Shot[]): Promise<number> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const end = performance.now() + SECONDS * 1000
  let done = 0
  async function worker(first: number): Promise<void> {
    for (let i = first; performance.now() < end; i++) {
      await fire(agent, to, shots[i % shots.length] as Shot)
      done++
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => worker(i * 7)))
  agent.destroy()
  return done / SECONDS
}

function fire(agent: http.Agent, to: Endpoint, shot: Shot): Promise<void> {
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
