import { join } from 'node:path'
import t from 'tap'
import { type Database, openDatabase } from '../../../../src/services/database.js'
import { FetchTable } from '../../../../src/services/platform/daemon/fetch-queue.js'
import { migrate } from '../../../../src/services/platform/store.js'
import { temporaryFolder } from '../../../support/content/folders.js'

t.test('no look at the deals to fetch reads all deals or all tasks', (t) => {
  const db = openDatabase(join(temporaryFolder(t), 'platform.db'), '', migrate)
  t.teardown(() => db.close())
  const statements: string[] = []
  const prepare = (sql: string) => {
    statements.push(sql)
    return db.prepare(sql)
  }
  new FetchTable({ prepare } as unknown as Database)
  t.ok(statements.length > 0)
  for (const sql of statements) {
    for (const { detail } of db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()) {
      t.notMatch(detail, /^SCAN (?!deals USING COVERING INDEX deals_stored)|TEMP B-TREE/, sql)
    }
  }
  t.end()
})
