import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Connection, type Database, recent, type Statement } from '../../../services/store/database.js'
import { openSqlite } from '../../../services/store/sqlite.js'
import { temporaryFolder } from '../../support/content/folders.js'

interface Names {
  readonly find: Statement
  readonly set: Statement
}

function tables(connection: Connection): Names {
  return {
    find: connection.prepare('SELECT name FROM names WHERE id = ?'),
    set: connection.prepare('INSERT INTO names VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name'),
  }
}

const schema = {
  owner: 'a test',
  name: 'test',
  steps: ['CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT)'],
  tables,
}

/** The database, and the same as another process has it. */
function open(t: Test): readonly [Database<Names>, Database<Names>] {
  const file = join(temporaryFolder(t), 'names.db')
  const [db, other] = [openSqlite(file, schema), openSqlite(file, schema)]
  t.teardown(() => Promise.all([db.close(), other.close()]))
  return [db, other]
}

const set = (db: Database<Names>, name: string) => db.transaction(({ set }) => set.run(1, name))
const nameIn = async ({ find }: Names) => (await recent<{ name: string }>(find, 1))?.name

t.test('a row that is kept is the last committed one', async (t) => {
  const [db, other] = open(t)
  t.equal(await nameIn(db.read), undefined)
  await set(db, 'own')
  t.equal(await nameIn(db.read), 'own', 'a row that was missing is looked for again')
  t.equal(await recent(db.read.find, 1), await recent(db.read.find, 1), 'one row is read once')
  await set(other, 'of another')
  t.equal(await nameIn(db.read), 'of another')
  for (let n = 0; n < 50; n++) {
    await set(n % 2 ? db : other, `${n}`)
    t.equal(await nameIn(db.read), `${n}`)
  }
})

t.test('a transaction under way shows nothing, and reads what it has written', async (t) => {
  const [db] = open(t)
  await set(db, 'before')
  t.equal(await nameIn(db.read), 'before')
  const failed = db.transaction(async (tables) => {
    await tables.set.run(1, 'never')
    t.equal(tables.find.recent, undefined)
    t.equal(await nameIn(tables), 'never')
    t.equal(await nameIn(db.read), 'before')
    throw new Error('rolled back')
  })
  await t.rejects(failed, /rolled back/)
  t.equal(await nameIn(db.read), 'before')
})

t.test('an answer about changes does not outlast its callback', async (t) => {
  const [db, other] = open(t)
  await set(db, 'before')
  for (let n = 0; n < 20; n++) {
    const seen: (string | undefined)[] = []
    const done = new Promise<void>((resolve) => {
      setImmediate(() => void nameIn(db.read))
      // In the same turn of the loop, as a request that comes after the change.
      setImmediate(async () => {
        await set(other, `${n}`)
        seen.push(await nameIn(db.read))
        resolve()
      })
    })
    await done
    await turn()
    t.strictSame(seen, [`${n}`])
  }
})
