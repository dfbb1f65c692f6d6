import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { postgres, redis } from '../state/servers.js'
import type { Endpoint } from '../suites/sign.js'
import { startGateway } from '../support/gateway/embedded.js'
import type { GatewayAddress } from '../support/gateway/gateway-address.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { modes } from '../support/server/modes.js'
import { send } from '../support/sign/send.js'
import { acknowledged, BUCKET, type Write, WriteScene } from './write-scene.js'

/**
 * docs/design.md, promise 13, under pauses at random moments: a gateway that is stopped for longer than its clients
 * wait, and a proxy that is stopped for longer than its leases last. No acknowledged write may be undone by one that
 * began before it ended. A few rounds each; `npm run stress` does 500.
 */

const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
const PAIR = { accessKey: 'paused-access', secretKey: 'paused-secret-key' }
const KEYS = ['--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey]
const ARGS = ['--gateway-timeout-seconds', '1', '--key-wait-seconds', '2', '--log-level', 'warn', ...KEYS]

async function rounds(t: Test, programs: readonly Dealgate[], paused: { readonly pid: number }, longest: number) {
  // The secret that was given is not announced.
  const proxies = programs.map(({ endpoint, region }) => ({ ...PAIR, endpoint, region }))
  const [first] = proxies as [Endpoint]
  t.equal((await send(first, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  t.teardown(() => goOn(paused.pid))
  const scene = new WriteScene(proxies)
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
    const steady = await startDealgate(t, { gateway, args })
    const paused = await startDealgate(t, { gateway, args })
    await rounds(t, [steady, paused], paused, 3000)
  })
}
