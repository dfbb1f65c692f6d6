import t from 'tap'
import { createLogger } from '../../../common/log.js'
import { GatewayWitness, type StoreIdentity } from '../../../src/state/guard.js'
import { StoreCheck } from '../../../src/state/store-check.js'

const log = createLogger({ level: 'silent' })

t.test('a look that began before another adopted the store raises no alarm', async (t) => {
  // Proxy A: two looks at the same time, as the start and `/-/ready` make them. Proxy B creates the id in between.
  let stored: StoreIdentity | undefined
  let known: string | undefined
  let gatewayKnows = false
  const answered = new Set<() => void>()
  const place = {
    get: async () => stored,
    change: async (_: string, to: (value: StoreIdentity | undefined) => StoreIdentity) => {
      stored = to(stored)
      return stored
    },
  }
  let asked = 0
  const epoch = new StoreCheck({
    places: [place] as never,
    folder: {
      get kept() {
        return { id: 'folder', epoch: known }
      },
      setStore: async ({ epoch }: StoreIdentity) => {
        known = epoch
      },
    } as never,
    gateway: {
      // The first look has read the empty store; its question reaches the gateway when B has told it of the epoch.
      contradicts: async (found: string | undefined) => {
        if (asked++ === 0) await new Promise<void>((resolve) => answered.add(resolve))
        return gatewayKnows && found === undefined
      },
      judgesNew: true,
      report: async () => 0,
      reportLater: () => {},
    } as never,
    log,
  })
  const first = epoch.look()
  await new Promise((resolve) => setImmediate(resolve))
  stored = { epoch: 'by B' }
  gatewayKnows = true
  await epoch.look()
  t.equal(known, 'by B', 'the second look adopts it')
  for (const answer of answered) answer()
  await first
  t.equal(epoch.problem, undefined)
})

t.test('the gateway is told the store of a data folder by a name of its own', async (t) => {
  const told: [string, readonly string[], number][] = []
  const gateway = {
    look: async () => undefined,
    keep: async (...given: [string, readonly string[], number]) => {
      told.push(given)
      return { known: true, others: false, mark: 7 }
    },
  }
  const identity = { epoch: 'new', over: ['old'], mark: 3 }
  t.equal(await new GatewayWitness(gateway, log, false).report(identity), 7)
  t.equal(await new GatewayWitness(gateway, log, true).report(identity), 7)
  t.same(told, [
    ['folder:new', ['folder:old'], 3],
    ['new', ['old'], 3],
  ])
})
