import { join } from 'node:path'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { isReported } from '../../common/errors/s3-error.js'
import { EmptyKinds } from '../../engines/sqlite/empty-kinds.js'
import { openDatabase, SqliteRows } from '../../engines/sqlite/rows.js'
import { temporaryFolder } from '../support/content/folders.js'
import { keptLog } from '../support/server/kept-log.js'

function setUp(t: Test): { database: DatabaseSyncInstance; rows: SqliteRows } {
  const database = openDatabase(join(temporaryFolder(t), 'records.sqlite'))
  const rows = new SqliteRows(database)
  t.teardown(() => rows.close())
  return { database, rows }
}

t.test('settings that durability rests on', async (t) => {
  const { database } = setUp(t)
  t.match(database.prepare('PRAGMA journal_mode').get(), { journal_mode: 'wal' })
  t.match(database.prepare('PRAGMA synchronous').get(), { synchronous: 2 })
})

t.test('closing commits what waits and refuses what comes after', async (t) => {
  const file = join(temporaryFolder(t), 'records.sqlite')
  const rows = new SqliteRows(openDatabase(file))
  const waiting = rows.put('k', 'v')
  rows.close()
  rows.close()
  await waiting
  const refused = { code: 'ServiceUnavailable', message: /shutting down/ }
  await t.rejects(rows.put('k', 'v'), refused)
  await t.rejects(rows.remove('k'), refused)
  t.throws(() => rows.get('k'), refused)
  try {
    rows.get('k')
  } catch (error) {
    t.ok(isReported(error, keptLog().log), 'what outlasts the end has no line in the log for each record')
  }
  const again = new SqliteRows(openDatabase(file))
  t.equal(again.get('k'), 'v')
  again.close()
})

t.test('a failing write is told to its writer', async (t) => {
  const { database, rows } = setUp(t)
  await t.rejects(rows.put('a\0b', 'v'), /NUL/)
  await t.rejects(rows.put('a', 'v\0'), /NUL/)
  await t.rejects(rows.remove('a\0b'), /NUL/)
  t.throws(() => rows.getMany(['a\0b']), /NUL/)

  database.exec(
    `CREATE TRIGGER refuse BEFORE INSERT ON entry WHEN NEW.key = 'bad' BEGIN SELECT RAISE(ABORT, 'refused'); END`,
  )
  const results = await Promise.allSettled([rows.put('good', '1'), rows.put('bad', '2'), rows.put('fine', '3')])
  t.same(
    results.map((result) => result.status),
    ['fulfilled', 'rejected', 'fulfilled'],
    'a refused row takes no other with it',
  )
  t.same(rows.getMany(['good', 'bad', 'fine']), ['1', undefined, '3'])

  const { page_count } = database.prepare('PRAGMA page_count').get() as { page_count: number }
  database.exec(`PRAGMA max_page_count = ${page_count + 2}`)
  const full = await Promise.allSettled(Array.from({ length: 50 }, (_, i) => rows.put(`big${i}`, 'x'.repeat(4000))))
  const stored = rows.getMany(Array.from({ length: 50 }, (_, i) => `big${i}`))
  t.ok(
    full.some((result) => result.status === 'rejected' && /full/.test(String(result.reason))),
    'disk full',
  )
  full.forEach((result, i) => {
    if ((stored[i] !== undefined) !== (result.status === 'fulfilled')) t.fail(`big${i} does not say what it did`)
  })
  database.exec('PRAGMA max_page_count = 1000000')
  await rows.put('after', 'v')
  t.equal(rows.get('after'), 'v', 'and it works again when there is room')
})

t.test('a kind without records is looked for once a second, until one is written', async (t) => {
  let [time, looks] = [0, 0]
  let isThere = false
  const empty = new EmptyKinds(
    () => {
      looks++
      return isThere
    },
    () => time,
  )
  t.ok(empty.has('object:a'))
  time = 999
  t.ok(empty.has('object:b'))
  t.ok(empty.knows('object'))
  t.equal(looks, 1, 'not looked for again within a second')
  time = 1000
  t.notOk(empty.knows('object'))
  isThere = true
  t.notOk(empty.has('object:a'), 'what another program has written is seen then')
  t.equal(looks, 2)
  empty.wrote('upload:a')
  t.notOk(empty.has('upload:b'))
  t.equal(looks, 2, 'a kind with records is not looked for at all')
})
