import { join } from 'node:path'
import t from 'tap'
import type { GatewayContext } from '../../../src/services/gateway/context.js'
import { Tasks } from '../../../src/services/gateway/deals/deals.js'
import { keepUp } from '../../../src/services/gateway/upkeep.js'
import { silentLog } from '../../../src/services/log.js'
import { embeddedSchema } from '../../../src/services/network/embedded/embedded-network.js'
import { openStore } from '../../../src/services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'

t.test('work that ends with the gateway is no failure', async (t) => {
  const warnings: string[] = []
  const tasks = new Tasks()
  let begun = () => {}
  const beginning = new Promise<void>((resolve) => {
    begun = resolve
  })
  // What waits for something, and ends with an error of its own when the gateway stops.
  const recover = () => {
    begun()
    return new Promise<void>((_, reject) => {
      tasks.signal.addEventListener('abort', () => reject(new Error('The connection is closed.')))
    })
  }
  const context = {
    ...{ tasks, db: { shared: true }, upkeep: { take: async () => true }, dealService: { recover } },
    ...{ holds: { releaseAgain: async () => {} }, limits: { reconcileMs: 60_000 } },
    log: { ...silentLog, warn: (_: object, message: string) => warnings.push(message) },
  } as unknown as GatewayContext
  keepUp(context)
  await beginning
  await tasks.stop()
  t.same(warnings, [])
})

t.test('deals that were given up are forgotten in the end', async (t) => {
  const place = { file: join(temporaryFolder(t), 'network.db'), database: await emptyDatabase() }
  const db = await openStore(embeddedSchema, place, silentLog)
  t.teardown(() => db.close())
  const day = 86_400_000
  await db.transaction(({ givenUp }) => givenUp.add('old', day))
  await db.transaction(({ givenUp }) => givenUp.add('new', 30 * day))
  const both = () => Promise.all(['old', 'new'].map((reference) => db.read.givenUp.has(reference)))
  t.same(await both(), [true, true])
  await db.transaction(({ givenUp }) => givenUp.add('newer', 32 * day))
  t.same(await both(), [false, true])
})
