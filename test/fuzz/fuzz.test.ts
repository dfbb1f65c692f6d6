import { createHash } from 'node:crypto'
import { Agent, request as httpRequest } from 'node:http'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import deal from '../../plugins/deal/index.js'
import type { Endpoint } from '../suites/sign.js'
import { type InProcess, startInProcess } from '../support/server/in-process.js'
import { modes } from '../support/server/modes.js'
import { send, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'
import { type Draft, draft } from './mutate.js'
import { Random } from './random.js'

/**
 * Mutated requests, most of them signed after they were mutated: none may be answered with a 5xx but 501 and 503, or
 * with nothing. `npm run fuzz` sends 100,000; DEALGATE_FUZZ_SEED repeats a round.
 */

const ROUNDS = Number(process.env.DEALGATE_FUZZ_ROUNDS ?? 800)
const SEED = Number(process.env.DEALGATE_FUZZ_SEED ?? 1)
const AT_ONCE = 16
/** No request of these takes as long: one that does hangs. */
const PATIENCE_MS = 120_000
const LEAST_AUTHENTICATED = 0.3

interface Tally {
  authenticated: number
  /** Causes by request id. */
  readonly failures: Map<string, string>
}

async function start(t: Test, mode: (typeof modes)[number], tally: Tally): Promise<Endpoint & { rows: Rows }> {
  const log = pino({ level: 'info', base: null }, { write: (line: string) => count(JSON.parse(line), tally) })
  const rights = [{ bucket: 'fuzz', prefix: 'folder/', access: 'readwrite' }] as const
  const { endpoint, proxy } = await startInProcess(t, mode, {
    identities: [
      { accessKeyId: 'fuzz-key', secretAccessKey: 'fuzz-secret' },
      { accessKeyId: 'part-key', secretAccessKey: 'part-secret', rights },
    ],
    log,
    plugins: [deal()],
  })
  return { endpoint, region: 'us-east-1', accessKey: 'fuzz-key', secretKey: 'fuzz-secret', rows: proxy.operations }
}

type Rows = InProcess['proxy']['operations']

interface Line {
  readonly access?: { readonly accessKeyId?: string }
  readonly requestId?: string
  readonly err?: { readonly stack?: string }
}

function count({ access, requestId, err }: Line, tally: Tally): void {
  if (access?.accessKeyId) tally.authenticated++
  if (requestId !== undefined && err) tally.failures.set(requestId, err.stack ?? '')
}

interface Outcome {
  readonly status: number
  readonly id: string
}

/** Status 0 for no answer. */
function exchange(server: Endpoint, agent: Agent, { method, target, body }: Draft, headers: Record<string, string>) {
  return new Promise<Outcome>((resolve) => {
    const { hostname, port } = new URL(server.endpoint)
    const length: Record<string, string> =
      body.length > 0 || method === 'PUT' || method === 'POST' ? { 'content-length': String(body.length) } : {}
    try {
      const request = httpRequest({ hostname, port, method, path: target, headers: { ...headers, ...length }, agent })
      request.setTimeout(PATIENCE_MS, () => request.destroy(new Error('no answer')))
      let outcome: Outcome = { status: 0, id: '' }
      request.on('error', ({ message }) => resolve(outcome.status === 0 ? { status: 0, id: message } : outcome))
      request.on('response', (response) => {
        outcome = { status: response.statusCode ?? 0, id: String(response.headers['x-amz-request-id'] ?? '') }
        response.on('error', () => {})
        response.on('close', () => resolve(outcome))
        response.resume()
      })
      request.end(body)
    } catch (error) {
      // The client itself sends no such request.
      resolve({ status: -1, id: String(error) })
    }
  })
}

/** Mostly signed, and rightly; else without a signature, or by a signature that something was changed after. */
function signed(random: Random, server: Endpoint, { method, target, headers, body }: Draft): Record<string, string> {
  const way = random.next()
  if (way < 0.1) return { ...headers }
  const keys = way < 0.2 ? { ...server, accessKey: 'part-key', secretKey: 'part-secret' } : server
  const framed = random.chance(0.05)
  const payloadHash = framed
    ? 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'
    : random.chance(0.2)
      ? UNSIGNED_PAYLOAD
      : createHash('sha256').update(body).digest('hex')
  try {
    const all = sign(keys, { method, target, headers, payloadHash }).headers
    if (way > 0.95) all['x-amz-date'] = '20130524T000000Z'
    return all
  } catch {
    // A target that has no canonical form cannot be signed.
    return { ...headers }
  }
}

for (const mode of modes) {
  const rounds = Math.ceil(ROUNDS / modes.length)
  t.test(`${mode}: ${rounds} mutated requests, seed ${SEED}`, async (t) => {
    const tally: Tally = { authenticated: 0, failures: new Map() }
    const server = await start(t, mode, tally)
    for (const target of ['/fuzz', '/fuzz-two']) await send(server, { method: 'PUT', target })
    const operations = server.rows.map(({ operation }) => operation)
    const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
    t.teardown(() => agent.destroy())
    const before = tally.authenticated
    let sent = 0
    let left = rounds
    const work = async () => {
      while (left-- > 0) {
        const number = rounds - left
        // Others of the mutations may have taken away what the rest needs.
        if (number % 200 === 0) await refresh(server)
        // Of its own, so that a number is the same request whichever of those under way is answered first.
        const random = new Random(SEED * 1_000_003 + number * modes.length + modes.indexOf(mode))
        const request = draft(random, operations)
        const headers = signed(random, server, request)
        const { status, id } = await exchange(server, agent, request, headers)
        if (status !== -1) sent++
        if (status !== 0 && (status < 500 || status === 501 || status === 503)) continue
        t.fail(`request ${number}: ${status} to ${request.method} ${request.target.slice(0, 200)}`, {
          headers,
          body: request.body.toString('latin1').slice(0, 500),
          cause: tally.failures.get(id) ?? id,
        })
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const refreshed = 3 * Math.floor(rounds / 200)
    const share = (tally.authenticated - before - refreshed) / sent
    t.ok(share >= LEAST_AUTHENTICATED, `${(share * 100).toFixed(1)} % pass authentication`)
    t.ok(sent > rounds * 0.9, 'hardly any of them is one that a client cannot send')
    t.equal((await send(server, { method: 'PUT', target: '/fuzz-two' })).status < 500, true, 'and it serves on')
  })
}

async function refresh(server: Endpoint): Promise<void> {
  for (const target of ['/fuzz', '/fuzz-two']) await send(server, { method: 'PUT', target })
  await send(server, { method: 'PUT', target: targetOf('fuzz', 'key'), body: Buffer.from('abc') })
}
