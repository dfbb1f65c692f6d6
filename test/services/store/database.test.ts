import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { silentLog } from '../../../services/log.js'
import {
  type Connection,
  type Database,
  DatabaseUnavailableError,
  LeaseLostError,
  type Schema,
  statements,
  together,
  UnknownCommitError,
} from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { openPostgres } from '../../../services/store/postgres.js'
import { inPostgres, numbered } from '../../../services/store/postgres-sql.js'
import { openSqlite } from '../../../services/store/sqlite.js'
import { startHanging } from '../../src/state/hanging.js'
import { postgres } from '../../src/state/servers.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { newDatabase } from '../engine.js'
import { Gate } from '../scripted-network.js'

const STEP = `CREATE TABLE counters (
  name TEXT PRIMARY KEY,
  "user" INTEGER NOT NULL,
  bytes BLOB
) STRICT;`

class Counters {
  readonly #sql

  constructor(connection: Connection) {
    this.#sql = statements(connection, {
      get: 'SELECT "user" FROM counters WHERE name = ?',
      put: 'INSERT INTO counters (name, "user") VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "user" = excluded."user"',
      names: 'SELECT name FROM counters ORDER BY name',
    })
  }

  async get(name: string): Promise<number> {
    return (await this.#sql.get.get<{ user: number }>(name))?.user ?? 0
  }

  async put(name: string, value: number): Promise<void> {
    await this.#sql.put.run(name, value)
  }

  async names(): Promise<string[]> {
    return (await this.#sql.names.all<{ name: string }>()).map(({ name }) => name)
  }
}

const schema = {
  owner: 'a test',
  name: 'test',
  steps: [STEP],
  tables: (connection) => ({ counters: new Counters(connection) }),
} satisfies Schema<{ counters: Counters }>

type Opened = Database<{ counters: Counters }>

async function add(db: Opened, name: string, by: number): Promise<number> {
  return db.transaction(async ({ counters }) => {
    const value = (await counters.get(name)) + by
    await counters.put(name, value)
    return value
  })
}

/** Ends the connection of a transaction that writes `ended` while it commits. */
const ENDING = `
  CREATE FUNCTION ended() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER ending AFTER INSERT ON dealgate_test.counters DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (new.name = 'ended') EXECUTE FUNCTION ended();
`

/** Where nothing answers. */
const NOWHERE = 'postgres://127.0.0.1:1/'

/** What both engines promise. */
async function checkEngine(t: Test, db: Opened): Promise<void> {
  await Promise.all(Array.from({ length: 20 }, () => add(db, 'shared', 1)))
  t.equal(await db.read.counters.get('shared'), 20, 'no change is lost')
  await t.rejects(
    db.transaction(async ({ counters }) => {
      await counters.put('shared', 0)
      t.equal(await counters.get('shared'), 0, 'a transaction sees its own writes')
      t.equal(await db.read.counters.get('shared'), 20, 'and no other reader does')
      throw new RangeError('no')
    }),
    /^no$/,
  )
  t.equal(await db.read.counters.get('shared'), 20, 'what throws changes nothing')
  for (const name of ['a', 'B', 'é', 'b']) await add(db, name, 1)
  t.same(await db.read.counters.names(), ['B', 'a', 'b', 'shared', 'é'], 'texts compare as bytes')
}

t.test('SQLite', async (t) => {
  const file = join(temporaryFolder(t), 'test.db')
  const db = openSqlite(file, schema)
  await checkEngine(t, db)
  const began: string[] = []
  const adding = (name: string, more: () => void) =>
    db.transaction(async ({ counters }) => {
      began.push(name)
      await counters.put(name, (await counters.get(name)) + 1)
      more()
    })
  const fails = () => {
    throw new RangeError('no')
  }
  const outcomes = await Promise.allSettled([adding('c', () => {}), adding('d', fails), adding('f', () => {})])
  t.same(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  t.same(began, ['c', 'd', 'c', 'd', 'f'], 'after one that throws, the whole batch runs again')
  const { read } = db
  t.same(await Promise.all(['c', 'd', 'f'].map((name) => read.counters.get(name))), [1, 0, 1], 'and each counts once')
  await t.rejects(
    db.transaction(async ({ counters }) => {
      await setImmediate()
      await counters.put('shared', 0)
    }),
    /waits for something else/,
  )
  await setImmediate()
  await t.rejects(add(db, 'shared', 1), /waits for something else/, 'and the database stops')
  await db.close()
  const again = openSqlite(file, schema)
  t.equal(await again.read.counters.get('shared'), 20)
  const last = add(again, 'shared', 1)
  await again.close()
  t.equal(await last, 21, 'what has begun ends')
  await t.rejects(add(again, 'shared', 1), /closed/)
  t.throws(() => openSqlite(file, { ...schema, steps: [] }), /A later version of dealgate/)
})

t.test('PostgreSQL', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const open = (url: string) => openPostgres(url, schema, silentLog)
  const [db, other, third] = await Promise.all([open(url), open(url), open(url)])
  await checkEngine(t, db)
  await Promise.all([db, other].flatMap((one) => Array.from({ length: 20 }, () => add(one, 'shared', 1))))
  t.equal(await db.read.counters.get('shared'), 60, 'two processes lose no change of each other')
  await t.rejects(openPostgres(url, { ...schema, steps: [] }, silentLog), /A later version of dealgate/)

  const readers = Array.from({ length: 20 }, async (_, n) => {
    const snapshot = await db.snapshot()
    await add(db, `beside ${n}`, 1)
    t.equal(await snapshot.read.counters.get(`beside ${n}`), 0)
    await snapshot.close()
  })
  await Promise.all(readers)

  // Both go out together. The second has the error of a transaction that has failed, and may come up first.
  const failing = db.transaction(
    ({ counters }) => {
      const first = counters.put('a', null as unknown as number).finally(() => setImmediate())
      return Promise.all([first, counters.put('b', 1)])
    },
    { locks: ['a'] },
  )
  await t.rejects(failing, { code: '23502' }, 'the error of the statement that failed')

  // A part that nothing waits for.
  const rest = new Gate()
  let late: Promise<void> | undefined
  const left = db.transaction(
    async ({ counters }) => {
      late = rest.pass().then(() => counters.put('late', 1))
      late.catch(() => {})
      throw new Error('left')
    },
    { locks: ['a'] },
  )
  await t.rejects(left, { message: 'left' })
  const next = db.transaction(
    async ({ counters }) => {
      rest.open()
      await t.rejects(late as Promise<void>, /has ended/, 'does not go on in the next transaction')
      await counters.put('next', 1)
    },
    { locks: ['a'] },
  )
  await next
  t.same([await db.read.counters.get('late'), await db.read.counters.get('next')], [0, 1])

  const way = await startHanging(t, url)
  const cut = await open(way.url)
  await add(cut, 'cut', 1)
  way.moveTo(NOWHERE)
  const failure = await add(cut, 'cut', 1).catch((error) => error)
  t.type(failure, DatabaseUnavailableError)
  t.notOk(failure instanceof UnknownCommitError, 'nothing was committed')
  await t.rejects(cut.read.counters.get('cut'), DatabaseUnavailableError)
  way.moveTo(url)
  const owner = new pg.Client(url)
  await owner.connect()
  await owner.query(ENDING)
  const ended = await add(db, 'ended', 1).catch((error) => error)
  t.type(ended, UnknownCommitError, 'a commit without an answer may have taken place')
  await owner.end()
  await until('it recovers by itself', () => add(cut, 'cut', 1).then(Boolean, () => false))
  const last = add(db, 'last', 1)
  for (const one of [cut, other, db, third]) await one.close()
  t.equal(await last, 1, 'what has begun ends')
  await t.rejects(open(`${url}?options=-c%20search_path%3Dpublic`), /must not have options/)
})

t.test('a schema for one process', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const open = (url: string) => openPostgres(url, { ...schema, exclusive: true }, silentLog)
  const isOpen = (db: Opened) => add(db, 'shared', 1).then(Boolean, () => false)
  const way = await startHanging(t, url)
  const first = await open(way.url)
  await add(first, 'shared', 1)
  await t.rejects(open(url), { code: 'DATA_IN_USE', message: /a test .* in use by another running process/ })
  t.ok(await isOpen(first), 'the second has not disturbed the first')
  way.moveTo(NOWHERE)
  await until('the first knows', async () => !(await isOpen(first)))
  way.moveTo(url)
  await until('it gets the claim back that was not taken', () => isOpen(first))
  await t.rejects(open(url), { code: 'DATA_IN_USE' })

  // As a database does that waits for its standby.
  await withClient(url, async (client) => {
    await client.query('BEGIN; LOCK TABLE dealgate_test.lease IN ACCESS EXCLUSIVE MODE')
    way.moveTo(NOWHERE)
    way.moveTo(url)
    await until('it asks whether its claim holds', () => waits(client, "relation = 'dealgate_test.lease'::regclass"))
    await until('it gives up, and begins again', () => waits(client, "locktype = 'advisory'"))
    await client.query('COMMIT')
  })
  await until('it gets the claim back after no answer', () => isOpen(first))

  way.moveTo(NOWHERE)
  const second = await open(url)
  way.moveTo(url)
  await t.rejects(add(first, 'shared', 1), DatabaseUnavailableError)
  await t.rejects(first.read.counters.get('shared'), DatabaseUnavailableError, 'nor does it read')
  await second.close()
  const third = await open(url)
  await t.rejects(add(first, 'shared', 1), DatabaseUnavailableError, 'not even when the other has ended')

  // As for a process that was stopped while it lost its connection, and does not know yet.
  const beside = await openPostgres(url, schema, silentLog)
  let next = Promise.resolve(0)
  await third.transaction(async ({ counters }) => {
    next = overtake(url)
    await until('the next process waits', () => isWaiting(url))
    await counters.put('late', 1)
  })
  t.equal(await next, 1, 'the next process begins when the last transaction has ended')
  await t.rejects(add(third, 'late', 1), LeaseLostError)
  t.equal(await beside.read.counters.get('late'), 1, 'what is refused changes nothing')
  for (const one of [first, third, beside]) await one.close()
})

t.test('a folder and its tables', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const other = await newDatabase()
  const open = (folder: string, database?: string) =>
    openStore(schema, { file: join(folder, 'test.db'), database }, silentLog)
  const [served, fresh, second] = [temporaryFolder(t), temporaryFolder(t), temporaryFolder(t)]
  await (await open(served)).close()
  await t.rejects(open(served, url), /are in the data folder: copy them/)
  await (await open(fresh, url)).close()
  await (await open(fresh, url)).close()
  await (await open(second, url)).close()
  await t.rejects(open(fresh), /are in PostgreSQL: start with --database/)
  await t.rejects(open(fresh, other), /belongs to other tables/)
  await (await open(served)).close()
})

t.test('statements that PostgreSQL keeps', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const kept = {
    ...schema,
    tables: (connection: Connection) => ({
      connection,
      ...statements(connection, {
        every: 'SELECT * FROM counters',
        some: 'SELECT name, (SELECT count(*) FROM counters) AS count FROM counters WHERE name = ?',
        plan: 'EXPLAIN SELECT "user" FROM counters WHERE name = ?',
        names: 'SELECT name FROM pg_prepared_statements',
      }),
    }),
  }
  const db = await openPostgres(url, kept, silentLog)
  t.teardown(() => db.close())
  await db.transaction(({ connection }) => connection.prepare("INSERT INTO counters VALUES ('a', 1, NULL)").run())
  const all = () =>
    db.transaction(async ({ every, some, names }) => [
      await every.get(),
      await some.get('a'),
      (await names.all()).length,
    ])
  t.match(await all(), [{ name: 'a', user: 1 }, { name: 'a', count: 1 }, 2])
  const later = { ...schema, steps: [STEP, 'ALTER TABLE counters ADD COLUMN later INTEGER NOT NULL DEFAULT 7;'] }
  await (await openPostgres(url, later, silentLog)).close()
  t.match(await all(), [{ name: 'a', later: 7 }, { name: 'a', count: 1 }, 2], 'beside a later version')
  const plan = await db.transaction(({ plan }) => plan.all<{ 'QUERY PLAN': string }>('a'))
  t.match(plan.map((row) => row['QUERY PLAN']).join(), /Index Scan/, 'a small table, which may grow')
})

t.test('a lease', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const [one, two] = [await openPostgres(url, schema, silentLog), await openPostgres(url, schema, silentLog)]
  const [first, second] = [one.lease('work'), two.lease('work')]
  await t.rejects(add(first.db, 'work', 1), LeaseLostError, 'it must be taken')
  t.same(await Promise.all([first.take(), first.take()]), [true, true])
  t.equal(await second.take(), false)
  t.same([first.held(), second.held()], [true, false])
  t.equal(await two.lease('other').take(), true, 'those of other names are others')
  t.equal(await add(first.db, 'work', 1), 1)
  t.equal(await add(two, 'work', 1), 2, 'without it, anyone may change everything')

  await first.db.transaction(async ({ counters }) => {
    await withClient(url, (client) =>
      client.query("UPDATE dealgate_test.lease SET expires = expires + interval '1 second'"),
    )
    await counters.put('renewed', 1)
  })
  t.equal(await add(first.db, 'renewed', 1), 2, 'a renewal waits for no transaction, and disturbs none')

  // As when the process is stopped for longer than it lasts.
  const { signal } = first
  let taken = Promise.resolve(false)
  await first.db.transaction(async ({ counters }) => {
    taken = expired(url).then(() => second.take())
    await until('the other waits', () => isWaiting(url))
    await counters.put('work', 7)
  })
  t.equal(await taken, true, 'another gets it when the last transaction has ended')
  t.equal(await add(second.db, 'work', 1), 8)
  t.equal(first.held(), true, 'the former does not know')
  await t.rejects(add(first.db, 'work', 1), LeaseLostError, 'and changes nothing')
  t.same([first.held(), signal.aborted, await two.read.counters.get('work')], [false, true, 8], 'then it knows')
  t.equal(await first.take(), false)
  await second.release()
  t.same([await first.take(), await second.take()], [true, false], 'one that is released can be had at once')
  await first.release()
  await second.take()
  await t.rejects(add(first.db, 'work', 1), LeaseLostError)
  for (const db of [one, two]) await db.close()
})

/** Ends all leases, once the transactions of their work have. */
function expired(url: string): Promise<unknown> {
  return withClient(url, (client) => client.query("UPDATE dealgate_test.lease SET expires = '-infinity'"))
}

/** True when a statement waits for a transaction. */
function isWaiting(url: string): Promise<boolean> {
  return withClient(url, (client) => waits(client, "locktype = 'transactionid'"))
}

/** Begins as the next process does. Resolves with what that finds. */
function overtake(url: string): Promise<number> {
  return withClient(url, async (client) => {
    await client.query('UPDATE dealgate_test.lease SET token = token + 1')
    const { rows } = await client.query(`SELECT "user" FROM dealgate_test.counters WHERE name = 'late'`)
    return Number(rows[0]?.user)
  })
}

/** @param which lock is waited for */
async function waits(client: pg.Client, which: string): Promise<boolean> {
  return (await client.query(`SELECT 1 FROM pg_locks WHERE NOT granted AND ${which}`)).rowCount !== 0
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

t.test('what does not want a lock waits for none who does', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const [one, two] = [await openPostgres(url, schema, silentLog), await openPostgres(url, schema, silentLog)]
  const stopped = new Gate()
  const first = two.transaction(() => stopped.pass(), { locks: ['bucket'] })
  await stopped.reached()
  const waiting = Array.from({ length: 20 }, () => one.transaction(async () => {}, { locks: ['bucket'] }))
  const settled = Promise.allSettled(waiting)
  const sharing = Array.from({ length: 20 }, () =>
    one.transaction(async () => {}, { locks: ['key'], shares: ['bucket'] }),
  )
  const shared = Promise.allSettled(sharing)
  t.equal(await one.read.counters.get('other'), 0)
  t.equal(await one.lease('run').take(), true)
  await one.transaction(({ counters }) => counters.put('other', 1), { locks: ['another key'], shares: ['other'] })
  t.equal(await one.read.counters.get('other'), 1, 'nor do other transactions')
  stopped.open()
  await first
  await Promise.all([settled, shared])
  await Promise.all([one.close(), two.close()])
})

t.test('statements in the words of PostgreSQL', async (t) => {
  t.equal(numbered("a = ? AND b = '?' AND c = ?"), "a = $1 AND b = '?' AND c = $2")
  t.equal(numbered('a = ?2 AND b = ?1 AND c = ?2'), 'a = $2 AND b = $1 AND c = $2')
  t.throws(() => numbered('SELECT user FROM a'), /in quotes/)
  t.throws(() => numbered('SELECT a AS bC FROM a'), /in quotes/)
  t.equal(
    inPostgres('CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, user INTEGER, b TEXT, c BLOB) STRICT;'),
    'CREATE TABLE a (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, "user" bigint, b text COLLATE "C", c bytea);',
  )
  t.equal(inPostgres('ALTER TABLE a ADD COLUMN b REAL;'), 'ALTER TABLE a ADD COLUMN b double precision;')
})

t.test('the parts of a transaction have all ended when one of them has failed', async (t) => {
  let ended = false
  const slow = async () => {
    for (let n = 0; n < 10; n++) await setImmediate()
    ended = true
    throw new Error('later')
  }
  const failing = async () => {
    throw new Error('first')
  }
  await t.rejects(together([slow(), failing()]), { message: 'first' })
  t.ok(ended)
  t.same(await together([1, Promise.resolve('two'), undefined]), [1, 'two', undefined])
})
