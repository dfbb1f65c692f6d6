import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { Keyv, type KeyvStoreAdapter } from 'keyv'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/common/log.js'
import { Guard } from '../../src/state/guard.js'
import { type SwapStore, Table } from '../../src/state/records/table.js'
import { openDatabase, SqliteRows } from '../../src/state/sqlite/rows.js'
import { SqliteStore } from '../../src/state/sqlite/store.js'
import { temporaryFolder } from '../support/content/folders.js'

const log = createLogger({ level: 'silent' })

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

t.test('group commit', async (t) => {
  const { rows } = setUp(t)
  await Promise.all(Array.from({ length: 900 }, (_, i) => rows.put(`k${i}`, `v${i}`)))
  t.equal(rows.commits, 1, 'the writes of one turn share a transaction')
  await Promise.all(Array.from({ length: 2500 }, (_, i) => rows.put(`k${i}`, `w${i}`)))
  t.equal(rows.commits, 4, 'of a thousand writes at most')
  t.equal(rows.get('k2499'), 'w2499')

  const first = rows.put('order', '1')
  t.equal(rows.get('order'), undefined, 'not to be seen before it is committed')
  const removal = rows.remove('order')
  const last = rows.put('order', '3')
  t.same(await Promise.all([first, removal, last]), [undefined, true, undefined])
  t.equal(rows.get('order'), '3', 'in the order they were asked for')
  t.equal(await rows.remove('none'), false)

  let other = 0
  let writing = true
  const turn = () => {
    other++
    if (writing) setImmediate(turn)
  }
  setImmediate(turn)
  await Promise.all(Array.from({ length: 20_000 }, (_, i) => rows.put(`t${i}`, 'x')))
  writing = false
  t.ok(other > 1, 'others have their turn between transactions')
})

t.test('a process alone remembers of which kinds there is no record', async (t) => {
  const database = openDatabase(join(temporaryFolder(t), 'records.sqlite'))
  let now = 0
  const first = new SqliteRows(database, undefined, true, () => now)
  const behind = (key: string) => database.prepare('INSERT INTO entry (key, value) VALUES (?, ?)').run(key, 'behind')
  t.teardown(() => first.close())
  t.equal(first.isEmpty('object'), false, 'before it has looked')
  t.equal(first.get('object:a'), undefined)
  t.equal(first.isEmpty('object'), true)
  behind('object:a')
  t.equal(first.get('object:a'), undefined, 'it does not look again')
  t.same(first.getMany(['object:a', 'object:b']), [undefined, undefined])
  t.equal(await first.remove('object:a'), false)
  behind('setting:a')
  behind('empty-name:')
  t.equal(first.get('empty-name:'), 'behind', 'a record with an empty name is one of its kind')
  t.equal(first.get('setting:a'), 'behind')
  t.equal(first.get('late:a'), undefined)
  behind('late:a')
  now += 999
  t.equal(first.get('late:a'), undefined)
  now += 1
  t.equal(first.get('late:a'), 'behind', 'what another program writes shows a second later')
  now = 0
  behind('objects:a')
  t.equal(first.get('objects:a'), 'behind', 'of other kinds it knows nothing')
  await first.put('object:b', 'own')
  t.same(first.getMany(['object:a', 'object:b']), ['behind', 'own'], 'until it writes one of the kind')
  t.equal(first.isEmpty('object'), false)
  await first.remove('object:b')
  t.equal(first.get('object:a'), 'behind')

  t.ok(await first.swap('part:a', undefined, 'swapped'))
  t.equal(first.get('part:a'), 'swapped')
  const shared = new SqliteRows(database)
  t.equal(shared.get('upload:a'), undefined)
  behind('upload:a')
  t.equal(shared.get('upload:a'), 'behind', 'where others write, each read looks')
})

t.test('closing commits what waits and refuses what comes after', async (t) => {
  const file = join(temporaryFolder(t), 'records.sqlite')
  const rows = new SqliteRows(openDatabase(file))
  const waiting = rows.put('k', 'v')
  rows.close()
  rows.close()
  await waiting
  await t.rejects(rows.put('k', 'v'), /closed/)
  await t.rejects(rows.remove('k'), /closed/)
  t.throws(() => rows.get('k'), /closed/)
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

t.test('time to live', async (t) => {
  const { database, rows } = setUp(t)
  await rows.put('gone', 'v', Date.now() - 1)
  await rows.put('kept', 'v', Date.now() + 60_000)
  await rows.put('for ever', 'v')
  t.same(rows.getMany(['gone', 'kept', 'for ever']), [undefined, 'v', 'v'])
  t.same(
    rows.page('', 'z', 10).map((row) => row.key),
    ['for ever', 'kept'],
  )
  const count = () => (database.prepare('SELECT count(*) AS n FROM entry').get() as { n: number }).n
  await rows.put('another', 'v', Date.now() + 60_000)
  t.equal(count(), 3, 'expired rows are cleared away by later writes that expire')
  await rows.put('kept', 'w')
  t.equal(rows.get('kept'), 'w')
})

t.test('as a Keyv storage adapter', async (t) => {
  const { rows } = setUp(t)
  // Keyv's published type of a store does not follow its own interface for iterators.
  const keyvOf = (namespace: string) =>
    new Keyv<unknown>({ store: new SqliteStore(rows) as KeyvStoreAdapter, namespace, throwOnErrors: true })
  const a = keyvOf('a')
  const b = keyvOf('ab')
  await a.set('k', { x: 1 })
  await b.set('k', ':odd')
  t.same(await a.get('k'), { x: 1 })
  t.equal(await b.get('k'), ':odd')
  t.same(await a.get(['none', 'k']), [undefined, { x: 1 }])
  await a.setMany([
    { key: 'm1', value: 1 },
    { key: 'm2', value: 2, ttl: 20 },
  ])
  t.equal(await a.has('m1'), true)
  t.same(await a.has(['m1', 'none']), [true, false])
  while ((await a.get('m2')) !== undefined) await sleep(5)
  t.equal(await a.has('m2'), false)

  for (let i = 0; i < 1200; i += 400) {
    await a.setMany(Array.from({ length: 400 }, (_, n) => ({ key: `i${i + n}`, value: i + n })))
  }
  const keys: string[] = []
  for await (const [key] of a.iterator?.(undefined) ?? []) keys.push(key)
  t.equal(keys.length, 1202, 'every key of the namespace, and none of the next one')
  t.equal(new Set(keys).size, 1202)

  t.equal(await a.delete('k'), true)
  t.equal(await a.delete('k'), false)
  t.equal(await a.delete(['m1', 'none']), true)
  t.equal(await a.delete(['none']), false)
  await a.clear()
  t.equal(await a.get('i1'), undefined)
  t.equal(await b.get('k'), ':odd', 'clear leaves other namespaces')
  await t.rejects(a.set('nul\0', 1), /NUL/)
  await a.disconnect()
  t.equal(await b.get('k'), ':odd')
})

t.test('Table', async (t) => {
  const silent: SwapStore = {
    opts: { dialect: 'sqlite' },
    get: () => new Promise(() => {}),
    getMany: () => new Promise(() => {}),
    set: () => new Promise(() => {}),
    delete: () => new Promise(() => {}),
    swap: () => new Promise(() => {}),
    setFenced: () => new Promise(() => {}),
    clear: async () => {},
    on: () => silent,
    async *iterator() {
      await new Promise(() => {})
    },
  }
  const guard = new Guard({ store: 'silent', timeoutMs: 20, probe: () => new Promise(() => {}), log })
  t.teardown(() => guard.close())
  const table = new Table({ store: silent, namespace: 'object', guard })
  await t.rejects(
    table.get('k'),
    { code: 'ServiceUnavailable', cause: /did not answer within 20 ms/ },
    'a store that hangs',
  )
  await t.rejects(table.getMany(['k']), { code: 'ServiceUnavailable' })
  await t.rejects(table.set('k', 1), { code: 'ServiceUnavailable' })
  await t.rejects(table.delete('k'), { code: 'ServiceUnavailable' })
  await t.rejects(table.entries().next(), { code: 'ServiceUnavailable' })

  const { rows } = setUp(t)
  const expiring = new Table<number>({ store: new SqliteStore(rows), namespace: 'completed', ttl: 20 })
  await expiring.set('k', 1)
  while ((await expiring.get('k')) !== undefined) await sleep(5)
  t.pass('ttl of the table')
})
