import { join } from 'node:path'
import t from 'tap'
import { DAY_MS } from '../../../common/time.js'
import { silentLog } from '../../../services/log.js'
import { embeddedSchema } from '../../../services/network/embedded/embedded-network.js'
import { openStore } from '../../../services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'

t.test('deals that were given up are forgotten in the end', async (t) => {
  const place = { file: join(temporaryFolder(t), 'network.db'), database: await emptyDatabase() }
  const db = await openStore(embeddedSchema, place, silentLog)
  t.teardown(() => db.close())
  const add = (reference: string, day: number) => db.transaction(({ givenUp }) => givenUp.add(reference, day * DAY_MS))
  await add('old', 1)
  await add('new', 30)
  const both = () => Promise.all(['old', 'new'].map((reference) => db.read.givenUp.has(reference)))
  t.same(await both(), [true, true])
  await add('newer', 32)
  t.same(await both(), [false, true])
})
