import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { Random } from '../fuzz/random.js'
import { goOn, paused, restarted, startGateways } from '../src/state/gateways.js'
import { startHanging } from '../src/state/hanging.js'
import { type PostgresServer, postgres, redis } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Between } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { missing, runAny } from '../support/programs/run.js'
import { startDealgate } from '../support/server/dealgate.js'
import type { Mode } from '../support/server/modes.js'
import { lastingPort } from '../support/server/ports.js'
import { insist } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { BUCKET, type Plan, Recorder } from './recorder.js'

// The proxies, the gateway and the state store that a history is recorded against, and what happens to them meanwhile.

const CHECKER = '.ci/history-checker/history-checker'
const PAIR = { accessKey: 'history-access', secretKey: 'history-secret-key' }
const ARGS = [
  ...['--gateway-timeout-seconds', '1', '--key-wait-seconds', '2', '--log-level', 'warn'],
  ...['--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey],
]
/** Longer than clients wait for the gateway, and than the leases of a proxy last, ms. */
const PAUSE_MS = { gateway: 2000, proxy: 2500 }
const JUMP_MS = 300_000
/** As many operations are done while connections are cut, and until what was held back is delivered. */
const CUT = 15
const LATE = 8
/** Its process has the clock of the machine, moved by as many milliseconds as the file says. */
const CLOCK = `import { readFileSync } from 'node:fs'
const real = Date
const now = real.now.bind(real)
let moved = 0
const look = () => { moved = Number(readFileSync(process.env.CLOCK_UNDER_TEST, 'utf8')) || 0 }
look()
setInterval(look, 20).unref()
globalThis.Date = class extends real {
  constructor(...parts) { if (parts.length === 0) super(now() + moved); else super(...parts) }
  static now() { return now() + moved }
}
`

const NO_GATEWAY = { url: '', accessKey: '', secretKey: '' }

type Disturbance =
  | 'stop the gateway'
  | 'kill a gateway'
  | 'cut connections to the database'
  | 'restart the database'
  | 'stop a proxy'
  | 'kill a proxy'
  | 'cut connections to the gateway'
  | 'cut connections to the state store'
  | 'move a clock'

interface Scene {
  readonly name: string
  readonly mode: Mode
  /** Without one there is one server, with its own folder. */
  readonly store?: typeof redis | typeof postgres
  readonly proxies: number
  /** Over the PostgreSQL server of `store`. Without: one, with its own folder. */
  readonly gateways?: number
  /** The one server runs the gateway itself, and reads its folder in each process that serves. */
  readonly embedded?: true
  readonly args?: readonly string[]
  readonly disturbances: readonly Disturbance[]
}

const always: readonly Disturbance[] = ['stop the gateway', 'kill a proxy', 'move a clock']
const cuts: readonly Disturbance[] = ['cut connections to the gateway', 'cut connections to the state store']

const own: readonly Disturbance[] = ['kill a proxy', 'move a clock', 'stop a proxy']

export const scenes: readonly Scene[] = [
  { name: 'redis', mode: 'full', store: redis, proxies: 3, disturbances: [...always, ...cuts, 'stop a proxy'] },
  { name: 'postgres', mode: 'full', store: postgres, proxies: 3, disturbances: [...always, ...cuts, 'stop a proxy'] },
  {
    name: 'one server',
    mode: 'full',
    proxies: 1,
    disturbances: [...always, 'stop a proxy', 'cut connections to the gateway'],
  },
  {
    name: 'workers',
    mode: 'full',
    proxies: 1,
    args: ['--workers', '2'],
    disturbances: ['stop the gateway', 'move a clock', 'cut connections to the gateway'],
  },
  { name: 'embedded', mode: 'full', proxies: 1, embedded: true, disturbances: own },
  {
    name: 'embedded with workers',
    mode: 'full',
    proxies: 1,
    embedded: true,
    args: ['--workers', '2'],
    disturbances: own,
  },
  {
    name: 'three gateways',
    mode: 'full',
    store: postgres,
    proxies: 3,
    gateways: 3,
    disturbances: [...always, ...cuts, 'kill a gateway', 'cut connections to the database', 'restart the database'],
  },
  // Without fences, a proxy that is stopped or killed may break the order, and so may a server before the gateway.
  {
    name: 'no fences',
    mode: 'legacy',
    store: redis,
    proxies: 2,
    disturbances: ['stop the gateway', 'move a clock', 'cut connections to the state store'],
  },
]

/** False when the checker is built; otherwise why a test is skipped. Throws with REQUIRE_CLIENTS=1. */
export function withoutChecker(): false | string {
  return !existsSync(CHECKER) && missing('the checker is not built: .ci/build-go-checks needs Go 1.23 or newer')
}

interface Verdict {
  readonly code: number | null
  readonly text: string
}

/** The exit codes are those of checker/main.go. */
export async function verdictOn(t: Test, lines: string, name = 'history'): Promise<Verdict> {
  const kept = process.env.DEALGATE_HISTORIES
  const file = join(kept === undefined ? temporaryFolder(t) : resolve(kept), `${name.replaceAll(' ', '-')}.jsonl`)
  writeFileSync(file, lines)
  const drawn = kept === undefined ? [] : ['-html', resolve(kept)]
  const { code, stdout, stderr } = await runAny(CHECKER, [...drawn, file])
  return { code, text: `${stdout}${stderr}` }
}

/** Starts a scene, records one history in it, and stops it when the test ends. */
export async function record(t: Test, scene: Scene, plan: Omit<Plan, 'model'>): Promise<Recorder> {
  const { mode, store, args = [] } = scene
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'clock.mjs'), CLOCK)
  const state = await store?.start(scene.gateways === undefined ? [] : ['-c', 'max_connections=400'])
  if (state) t.teardown(() => state.stop())
  const several = scene.gateways && state ? await startGateways(t, scene.gateways, { database: state.url }) : undefined
  const one = several || scene.embedded ? undefined : await startGateway(t, mode)
  const gateways: readonly { readonly pid: number }[] = several?.all ?? (one ? [one] : [])
  t.teardown(() => {
    for (const { pid } of gateways) goOn(pid)
  })
  const between = several?.between ?? (await Between.start(t, one ?? NO_GATEWAY))
  const way = state && (await startHanging(t, state.url))
  const shared = way ? ['--state', way.url, '--lock-lease-seconds', '1', '--staging', 'gateway'] : []
  const proxies = await Promise.all(
    Array.from({ length: scene.proxies }, async (_, i) => {
      const clock = join(folder, `clock-${i}`)
      writeFileSync(clock, '0')
      const env = {
        NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${pathToFileURL(join(folder, 'clock.mjs'))}`,
        CLOCK_UNDER_TEST: clock,
      }
      const port = await lastingPort()
      const proxy = await startDealgate(t, {
        ...(!scene.embedded && { gateway: between }),
        args: [...ARGS, ...shared, ...args],
        env,
        port,
      })
      t.teardown(() => goOn(proxy.pid))
      return { proxy, clock }
    }),
  )
  const [first] = proxies
  const doors = proxies.map(({ proxy: { endpoint, region } }) => ({ ...PAIR, endpoint, region }))
  const [authorizer] = doors
  if (!first || !authorizer) throw new Error('a scene has a proxy')
  await insist(authorizer, 'the bucket is made', { method: 'PUT', target: `/${BUCKET}` })

  const recorder = new Recorder(doors, { ...plan, model: mode === 'full' ? 'fenced' : 'plain' })
  const random = new Random(plan.seed)
  const act: Record<Disturbance, () => Promise<void>> = {
    'stop the gateway': () => paused(random.of(gateways), PAUSE_MS.gateway),
    'kill a gateway': () => restarted(random.of(several?.all ?? [])),
    async 'cut connections to the database'() {
      if (state) random.of(several?.all ?? []).way.moveTo(state.url)
    },
    'restart the database': () => (state as PostgresServer).restart(random.of(['SIGINT', 'SIGQUIT'])),
    'stop a proxy': () => paused(random.of(proxies).proxy, PAUSE_MS.proxy),
    'kill a proxy': () => restarted(random.of(proxies).proxy),
    async 'cut connections to the gateway'() {
      const chance = new Random(random.below(2 ** 31))
      const further = (count: number) => {
        const from = recorder.done
        return until('further operations are done', () => recorder.over || recorder.done >= from + count)
      }
      between.fate = ({ method }) => {
        if (chance.chance(0.7)) return 'pass'
        if (method === 'PUT' && chance.chance(0.5)) return { cutAndPassOn: further(LATE).then(() => {}) }
        return chance.of(['cut-before', 'cut-during', 'cut-after', 'silence-after'])
      }
      await further(CUT)
      between.fate = () => 'pass'
    },
    async 'cut connections to the state store'() {
      if (state) way?.moveTo(state.url)
    },
    async 'move a clock'() {
      writeFileSync(random.of(proxies).clock, String(random.below(2 * JUMP_MS) - JUMP_MS))
    },
  }
  const total = plan.clients * plan.each
  const steps = scene.disturbances.length + 1
  const order = shuffled(scene.disturbances, random)
  await recorder.run(async () => {
    for (const [i, disturbance] of order.entries()) {
      await until('the clients have got so far', () => recorder.over || recorder.done >= (total * (i + 1)) / steps)
      await act[disturbance]()
    }
  })
  return recorder
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  return list
    .map((item) => ({ item, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
