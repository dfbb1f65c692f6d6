import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import { loadavg } from 'node:os'
import { createInterface } from 'node:readline'
import { Pool } from 'undici'
import { ConnectionPool } from '../../src/gateway/transport/connection-pool.js'
import type { RestResponse } from '../../src/gateway/transport/response.js'
import { ask } from '../../src/gateway/transport/wire.js'
import { inTurn } from './large.js'
import { median } from './measure.js'

const MIB = 1024 * 1024
const CONNECTIONS = 16
/** Requests of a round for small bodies. */
const REQUESTS = 8000
const SMALL_BYTES = 1024
const TIMEOUT_MS = 30_000

/** A client for downloads over plain HTTP. Resolves with the number of bytes of the body. */
interface Way {
  readonly name: string
  readonly get: (path: string) => Promise<number>
  readonly close: () => Promise<void> | void
  /** CPU seconds of this process by round. */
  readonly large: number[]
  readonly small: number[]
}

/**
 * Decides whether `src/gateway/transport` stays: the CPU time that this process needs to read bodies over plain HTTP by
 * that client, by node:http with a long read-ahead, and by undici, in turn. The server is another
 * process. Nothing is done with the bytes but count them.
 */
export async function transport(rounds: number, size: number): Promise<void> {
  const server = spawn(process.execPath, ['--input-type=module', '--eval', SERVER], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [port] = (await once(createInterface(server.stdout), 'line')) as [string]
  const url = new URL(`http://127.0.0.1:${port}`)
  const ways = [ours(url), node(url), undici(url)]
  try {
    for (let round = 0; round <= rounds; round++) {
      const runs = ways.map((way) => async () => {
        const large = await cpuOf(() => expect(way, size))
        const small = await cpuOf(() => many(way))
        // The first round warms up.
        if (round > 0) {
          way.large.push(large)
          way.small.push(small)
        }
      })
      await inTurn(round, runs)
    }
    const [first] = ways
    for (const way of ways) {
      const gib = median(way.large) / (size / (1024 * MIB))
      const many = (median(way.small) / REQUESTS) * 10_000
      const ratio = (of: 'large' | 'small') => median(way[of].map((cost, i) => cost / (first?.[of][i] as number)))
      console.log(
        `${way.name.padEnd(12)} CPU s per GiB ${gib.toFixed(2)} (${ratio('large').toFixed(2)} times ours)   ` +
          `per 10,000 GET of 1 KiB ${many.toFixed(2)} (${ratio('small').toFixed(2)} times ours)   load ${loadavg()[0]?.toFixed(1)}`,
      )
    }
  } finally {
    for (const way of ways) await way.close()
    server.kill()
    await once(server, 'exit')
  }
}

function ours(url: URL): Way {
  const pool = new ConnectionPool(url)
  const get = async (path: string) => count(await ask(pool, { method: 'GET', path, headers: {} }, TIMEOUT_MS))
  return { name: 'transport/', get, close: () => pool.close(), large: [], small: [] }
}

function node(url: URL): Way {
  // Agents pass unknown options to the socket.
  const ahead: object = { highWaterMark: MIB }
  const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 64, noDelay: true, ...ahead })
  const get = async (path: string) => {
    const [message] = (await once(http.get(new URL(path, url), { agent }), 'response')) as [IncomingMessage]
    return sizeOf(message)
  }
  return { name: 'node:http', get, close: () => agent.destroy(), large: [], small: [] }
}

function undici(url: URL): Way {
  const pool = new Pool(url, { connections: CONNECTIONS })
  const get = async (path: string) => {
    return sizeOf((await pool.request({ method: 'GET', path })).body)
  }
  return { name: 'undici', get, close: () => pool.close(), large: [], small: [] }
}

async function sizeOf(body: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0
  for await (const chunk of body) bytes += chunk.length
  return bytes
}

function count(response: RestResponse): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0
    response.read(
      {
        data(chunk, done) {
          bytes += chunk.length
          done()
        },
        end: () => resolve(bytes),
        failed: reject,
      },
      2,
    )
  })
}

async function expect(way: Way, size: number): Promise<void> {
  const bytes = await way.get(`/${size}`)
  if (bytes !== size) throw new Error(`${way.name}: ${bytes} bytes instead of ${size}`)
}

async function many(way: Way): Promise<void> {
  const worker = async () => {
    for (let i = 0; i < REQUESTS / CONNECTIONS; i++) await expect(way, SMALL_BYTES)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
}

async function cpuOf(run: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

/** Answers GET /<n> with n bytes. */
const SERVER = `
import http from 'node:http'
const chunk = Buffer.alloc(256 * 1024, 'x')
const server = http.createServer(async (request, response) => {
  let left = Number(request.url.slice(1))
  response.writeHead(200, { 'content-length': left })
  while (left > 0) {
    const part = chunk.subarray(0, left)
    left -= part.length
    if (!response.write(part)) await new Promise((resolve) => response.once('drain', resolve))
  }
  response.end()
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`
