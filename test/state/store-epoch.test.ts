import t from 'tap'
import { createLogger } from '../../src/common/log.js'
import type { Epoch } from '../../src/state/guard.js'
import { StoreEpoch } from '../../src/state/store-epoch.js'

const log = createLogger({ level: 'silent' })

t.test('a look that began before another adopted the epoch raises no alarm', async (t) => {
  // Proxy A: two looks at the same time, as the start and `/-/ready` make them. Proxy B creates the epoch in between.
  let stored: Epoch | undefined
  let known: string | undefined
  let gatewayKnows = false
  const answered = new Set<() => void>()
  const place = {
    get: async () => stored,
    change: async (_: string, to: (value: Epoch | undefined) => Epoch) => {
      stored = to(stored)
      return stored
    },
  }
  let asked = 0
  const epoch = new StoreEpoch({
    places: [place] as never,
    folder: {
      get kept() {
        return { id: 'folder', epoch: known }
      },
      setEpoch: async ({ epoch }: Epoch) => {
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
      tell: async () => 0,
      tellLater: () => {},
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
