import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { postgres, redis } from '../state/servers.js'
import { Between } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { check, type Operation, Recorder, randomFrom, withoutChecker } from './recorder.js'

// Histories of concurrent clients over several proxies under faults, checked for linearizability: docs/consistency.md.

/** The suite records a sample; `npm run stress` records more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
const PAIR = { accessKey: 'history-access', secretKey: 'history-secret-key' }
const KEYS = ['a', 'b', 'c']
const CLIENTS = 6
const OPERATIONS = 25
const LEASE_SECONDS = 1

t.test('the checker refuses what must not happen', { skip: withoutChecker() }, async (t) => {
  const written = (value: string, at: number): Operation[] => [
    { key: 'k', client: 1, f: 'put', value, call: at, return: at + 1, outcome: 'ok' },
    { key: 'k', client: 1, f: 'tag', value, call: at, return: at + 1, outcome: 'ok' },
  ]
  const at = (call: number, rest: Pick<Operation, 'f' | 'outcome'> & Partial<Operation>): Operation => ({
    key: 'k',
    client: 2,
    call,
    ...(rest.outcome !== 'unknown' && { return: call + 1 }),
    ...rest,
  })
  const got = (call: number, found: string) => at(call, { f: 'get', outcome: found === '' ? 'absent' : 'ok', found })
  const allowed: Record<string, Operation[]> = {
    'a write is read': [...written('v', 0), got(2, 'v'), at(4, { f: 'tags', outcome: 'ok', found: 'v' })],
    'an unknown write takes effect late': [
      ...written('v', 0),
      at(2, { f: 'put', value: 'w', outcome: 'unknown' }),
      got(4, 'v'),
      got(6, 'w'),
    ],
    'a condition that an unknown write has broken': [
      at(0, { f: 'put', value: 'w', outcome: 'unknown' }),
      at(2, { f: 'put-if-none', value: 'v', outcome: 'precondition' }),
    ],
  }
  const refused: Record<string, Operation[]> = {
    'an acknowledged write is undone': [...written('v', 0), ...written('w', 2), got(4, 'v')],
    'an acknowledged write is lost': [...written('v', 0), got(2, '')],
    'a read goes back': [
      ...written('v', 0),
      at(2, { f: 'put', value: 'w', outcome: 'unknown' }),
      got(4, 'w'),
      got(6, 'v'),
    ],
    'acknowledged tags are lost': [...written('v', 0), at(2, { f: 'tags', outcome: 'ok', found: '' })],
    'two creations win': [
      at(0, { f: 'put-if-none', value: 'v', outcome: 'ok' }),
      at(2, { f: 'put-if-none', value: 'w', outcome: 'ok' }),
    ],
    'a condition on another value held': [
      ...written('v', 0),
      ...written('w', 2),
      at(4, { f: 'put-if-match', value: 'x', expected: 'v', outcome: 'ok' }),
    ],
    'a removed object is back': [...written('v', 0), at(2, { f: 'delete', outcome: 'ok' }), got(4, 'v')],
  }
  for (const [what, history] of Object.entries(allowed)) t.ok((await check(history)).linearizable, what)
  for (const [what, history] of Object.entries(refused)) t.notOk((await check(history)).linearizable, what)
})

/** Faults of one history, one after the other, until the clients are done. */
class Faults {
  readonly #proxies: readonly Dealgate[]
  readonly #ways: readonly Between[]
  readonly #gateway: number
  readonly #random: () => number
  readonly done: string[] = []

  constructor(proxies: readonly Dealgate[], ways: readonly Between[], gateway: number, random: () => number) {
    this.#proxies = proxies
    this.#ways = ways
    this.#gateway = gateway
    this.#random = random
  }

  async until(ended: Promise<unknown>): Promise<void> {
    let over = false
    const end = ended.finally(() => {
      over = true
    })
    end.catch(() => {})
    while (!over) {
      await sleep(this.#random() * 400)
      if (!over) await this.#one()
    }
    for (const way of this.#ways) way.fate = () => 'pass'
  }

  async #one(): Promise<void> {
    const at = Math.floor(this.#random() * this.#proxies.length)
    const proxy = this.#proxies[at] as Dealgate
    const way = this.#ways[at] as Between
    const dice = this.#random()
    if (dice < 0.3) {
      this.done.push('kill')
      await proxy.kill9()
      await proxy.start()
    } else if (dice < 0.5) {
      this.done.push('pause')
      process.kill(proxy.pid, 'SIGSTOP')
      await sleep(this.#random() * 2000 * LEASE_SECONDS)
      process.kill(proxy.pid, 'SIGCONT')
    } else if (dice < 0.6) {
      this.done.push('gateway')
      process.kill(this.#gateway, 'SIGSTOP')
      await sleep(this.#random() * 1000)
      process.kill(this.#gateway, 'SIGCONT')
    } else {
      this.done.push('cuts')
      const fates = ['cut-before', 'cut-during', 'cut-after', 'silence-after'] as const
      way.fate = ({ method, path }) => {
        if (this.#random() < 0.6) return 'pass'
        // An upload whose sender has gone comes late.
        if (method === 'PUT' && this.#random() < 0.5) return { cutAndPassOn: sleep(this.#random() * 2000) }
        return path.includes('/webrpc') || method === 'PUT'
          ? (fates[Math.floor(this.#random() * 3)] as (typeof fates)[0])
          : 'pass'
      }
      await sleep(this.#random() * 1000)
      way.fate = () => 'pass'
    }
  }
}

async function record(t: Test, stateUrl: string, seed: number): Promise<void> {
  const random = randomFrom(seed)
  const gateway = await startGateway(t, 'full', { ownProcess: true })
  t.teardown(() => process.kill(gateway.pid, 'SIGCONT'))
  const ways = await Promise.all([0, 1, 2].map(() => Between.start(t, gateway)))
  const args = [
    ...['--state', stateUrl, '--lock-lease-seconds', String(LEASE_SECONDS), '--staging', 'gateway'],
    ...['--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey],
    ...['--gateway-timeout-seconds', '3', '--key-wait-seconds', '2'],
  ]
  const proxies = await Promise.all(
    ways.map(async (way) => startDealgate(t, { gateway: way, args, port: await lastingPort(), ownProcess: true })),
  )
  const servers = proxies.map(({ endpoint, region }) => ({ ...PAIR, endpoint, region }))
  const bucket = `history-${seed}`
  const [first] = servers
  if (!first) throw new Error('no server')
  t.equal((await send(first, { method: 'PUT', target: `/${bucket}` })).status, 200)
  const recorder = new Recorder(servers, bucket, random)
  const faults = new Faults(proxies, ways, gateway.pid, random)
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => recorder.client(i + 1, KEYS, OPERATIONS)))
  await faults.until(clients)
  await clients
  await until('the last reads', async () => {
    await recorder.readAll(KEYS)
    return true
  })
  const { history } = recorder
  const { linearizable, lines } = await check(history)
  const unknown = history.filter(({ outcome }) => outcome === 'unknown').length
  t.comment(
    `seed ${seed}: ${history.length} operations, ${unknown} without a known outcome, faults: ${faults.done.join(' ')}`,
  )
  t.ok(linearizable, `seed ${seed} is linearizable`, linearizable ? {} : { lines, history })
  t.ok(
    history.filter(({ outcome, f }) => outcome === 'ok' && f.startsWith('put')).length > 10,
    'writes are acknowledged',
  )
}

for (const [i, kind] of [redis, postgres].entries()) {
  const skip = kind.skip || withoutChecker()
  t.test(`histories over ${kind.name}`, { skip, timeout: 120_000 * ROUNDS }, async (t) => {
    for (let round = i; round < ROUNDS; round += 2) {
      const seed = Math.floor(Math.random() * 2 ** 32)
      await t.test(`seed ${seed}`, async (t) => {
        const server = await kind.start()
        t.teardown(() => server.stop())
        await record(t, server.url, seed)
      })
    }
  })
}
