import { join } from 'node:path'
import type { Test } from 'tap'
import { type GatewayTables, indexSchema } from '../../../services/gateway/index-schema.js'
import { silentLog } from '../../../services/log.js'
import type { Database } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'

/** An empty index, which is closed with the test. */
export async function openIndex(t: Test): Promise<Database<GatewayTables>> {
  const place = { file: join(temporaryFolder(t), 'index.db'), database: await emptyDatabase() }
  const db = await openStore(indexSchema, place, silentLog)
  t.teardown(() => db.close())
  return db
}
