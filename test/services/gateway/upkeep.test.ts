import { join } from 'node:path'
import t from 'tap'
import type { GatewayContext } from '../../../src/services/gateway/context.js'
import { Tasks } from '../../../src/services/gateway/deals/deals.js'
import { indexSchema } from '../../../src/services/gateway/index-schema.js'
import { removeDoomed } from '../../../src/services/gateway/store/doomed.js'
import { keepUp } from '../../../src/services/gateway/upkeep.js'
import { silentLog } from '../../../src/services/log.js'
import { embeddedSchema } from '../../../src/services/network/embedded/embedded-network.js'
import type { Bodies } from '../../../src/services/store/bodies.js'
import { DatabaseUnavailableError } from '../../../src/services/store/database.js'
import { soleLease, withLease } from '../../../src/services/store/lease.js'
import { openStore } from '../../../src/services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'

t.test('a stop ends the removal of many bodies', async (t) => {
  const place = { file: join(temporaryFolder(t), 'index.db'), database: await emptyDatabase() }
  const db = await openStore(indexSchema, place, silentLog)
  t.teardown(() => db.close())
  const names = Array.from({ length: 1100 }, (_, n) => `body ${n}`)
  await db.transaction(async ({ doomed }) => {
    for (const name of names) await doomed.add({ name, size: 1, mark: null }, 1)
  })
  const stop = new AbortController()
  const bodies = { discard: () => stop.abort() } as unknown as Bodies
  await t.rejects(removeDoomed(db, bodies, 0, stop.signal), { name: 'AbortError' })
  t.equal((await db.read.doomed.among(names)).length, 600, 'after what had begun')
})

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

t.test('a lease that another process keeps is not waited for without end', async (t) => {
  const lease = soleLease({} as never)
  t.equal(await withLease(lease, async () => 'done', 0), 'done')
  const taken = { ...lease, take: async () => false }
  await t.rejects(
    withLease(taken, async () => 'done', 1),
    DatabaseUnavailableError,
  )
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
