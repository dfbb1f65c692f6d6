import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { postgres, redis } from '../state/servers.js'
import type { Endpoint } from '../suites/sign.js'
import { startGateway } from '../support/gateway/embedded.js'
import type { GatewayAddress } from '../support/gateway/gateway-address.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { modes } from '../support/server/modes.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'

/**
 * DESIGN section 4, promise 13, under pauses at random moments: a gateway that is stopped for longer than its clients wait, and a proxy that is stopped for longer than
 * its leases last. No acknowledged write may be undone by one that began before it ended. A few rounds each; `npm run stress` does 500.
 */

const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 4)
const BUCKET = 'paused'
const PAIR = { accessKey: 'paused-access', secretKey: 'paused-secret-key' }
const KEYS = ['--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey]
const ARGS = ['--gateway-timeout-seconds', '1', '--key-wait-seconds', '2', '--log-level', 'warn', ...KEYS]
const WRITERS = 6
const PATIENCE_MS = 120_000

interface Write {
  /** undefined removes. */
  readonly body: string | undefined
  readonly conditional: boolean
  /** By `performance.now()`, of the client. */
  readonly from: number
  readonly until: number
  /** The answer, or 0 when there was none. */
  readonly status: number
}

const acknowledged = ({ status }: Write) => status === 200 || status === 204

class Scene {
  readonly #proxies: readonly Endpoint[]
  /** Every write there was, by key. */
  readonly writes = new Map<string, Write[]>()

  constructor(proxies: readonly Endpoint[]) {
    this.#proxies = proxies
  }

  async #write(key: string, name: string, kind: 'create' | 'mixed'): Promise<void> {
    const server = this.#proxies[Math.floor(Math.random() * this.#proxies.length)] as Endpoint
    const removal = kind === 'mixed' && Math.random() < 0.25
    const body = removal ? undefined : `${name} `.repeat(Math.random() < 0.3 ? 60_000 : 3)
    const from = performance.now()
    const answer = await send(server, {
      method: removal ? 'DELETE' : 'PUT',
      target: targetOf(BUCKET, key),
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
      headers: kind === 'create' ? { 'if-none-match': '*' } : {},
    }).catch((): Pick<Answer, 'status'> => ({ status: 0 }))
    const write = { body, conditional: kind === 'create', from, until: performance.now(), status: answer.status }
    this.writes.get(key)?.push(write)
  }

  /** Writers to one key while `pause` stops something. */
  async round(round: number, pause: () => Promise<void>): Promise<string> {
    const kind = round % 2 === 0 ? 'create' : 'mixed'
    const key = `${kind}-${round}`
    this.writes.set(key, [])
    const writers = Array.from({ length: WRITERS }, async (_, i) => {
      for (const turn of ['a', 'b', 'c']) {
        await sleep(Math.random() * 300)
        await this.#write(key, `${round}-${i}-${turn}`, kind)
      }
    })
    await Promise.all([...writers, pause()])
    return key
  }

  /** What is there, once somebody can say. */
  async #look(key: string): Promise<string | undefined> {
    for (const end = performance.now() + PATIENCE_MS; ; await sleep(100)) {
      const [server] = this.#proxies as [Endpoint]
      const { status, body } = await send(server, { method: 'GET', target: targetOf(BUCKET, key) })
      if (status === 200) return body.toString()
      if (status === 404) return undefined
      if (performance.now() > end) throw new Error(`${key}: ${status}`)
    }
  }

  /** Undefined when all is well. */
  async whatIsWrong(key: string): Promise<string | undefined> {
    const writes = this.writes.get(key) ?? []
    const now = await this.#look(key)
    const made = writes.filter((write) => write.conditional && acknowledged(write))
    if (made.length > 1) return `${made.length} writers have created it`
    if (made.length === 1)
      return made[0]?.body === now ? undefined : 'another object is in the place of the created one'
    const candidates = writes.filter(({ body, status }) => body === now && status !== 412)
    if (now === undefined && !writes.some((write) => acknowledged(write) && write.body !== undefined)) return undefined
    if (candidates.length === 0) return `nobody has written ${now?.slice(0, 20)}`
    // It may be any write that no acknowledged one came after.
    const standing = candidates.filter(
      (candidate) => !writes.some((later) => acknowledged(later) && later.from > candidate.until),
    )
    return standing.length > 0 ? undefined : `an acknowledged write was undone by ${now?.slice(0, 20) ?? 'a removal'}`
  }
}

async function rounds(t: Test, programs: readonly Dealgate[], paused: { readonly pid: number }, longest: number) {
  // The secret that was given is not announced.
  const proxies = programs.map(({ endpoint, region }) => ({ ...PAIR, endpoint, region }))
  const [first] = proxies as [Endpoint]
  t.equal((await send(first, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  t.teardown(() => goOn(paused.pid))
  const scene = new Scene(proxies)
  for (let round = 0; round < ROUNDS; round++) {
    const key = await scene.round(round, async () => {
      await sleep(Math.random() * 500)
      process.kill(paused.pid, 'SIGSTOP')
      await sleep(longest * (0.3 + 0.7 * Math.random()))
      process.kill(paused.pid, 'SIGCONT')
    })
    const wrong = await scene.whatIsWrong(key)
    if (wrong !== undefined) t.fail(`${key}: ${wrong}`, { writes: scene.writes.get(key)?.map(short) })
  }
  // What was on its way for longer.
  for (const key of scene.writes.keys()) {
    const wrong = await scene.whatIsWrong(key)
    if (wrong !== undefined) t.fail(`${key}, in the end: ${wrong}`, { writes: scene.writes.get(key)?.map(short) })
  }
  const all = [...scene.writes.values()].flat()
  const count = all.filter(acknowledged).length
  t.ok(count > 0, `${count} of ${all.length} writes were acknowledged in ${ROUNDS} rounds`)
}

const short = ({ body, ...write }: Write) => ({ ...write, body: body?.slice(0, 12) })

function goOn(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch {
    // It has ended.
  }
}

for (const mode of modes) {
  t.test(`${mode}: a gateway that pauses`, async (t) => {
    const gateway = await startGateway(t, mode)
    const server = await startDealgate(t, { mode, gateway, args: ARGS })
    await rounds(t, [server], gateway, 2500)
  })
}

for (const store of [redis, postgres]) {
  t.test(`a proxy that pauses for longer than its leases, on ${store.name}`, { skip: store.skip }, async (t) => {
    const state = await store.start()
    t.teardown(() => state.stop())
    const gateway: GatewayAddress = await startGateway(t, 'full')
    const args = [...ARGS, '--state', state.url, '--lock-lease-seconds', '1']
    const [steady, paused] = [await startDealgate(t, { gateway, args }), await startDealgate(t, { gateway, args })]
    await rounds(t, [steady, paused], paused, 3000)
  })
}
