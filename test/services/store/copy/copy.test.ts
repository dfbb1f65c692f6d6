import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { indexSchema } from '../../../../services/gateway/index-schema.js'
import { silentLog } from '../../../../services/log.js'
import { embeddedSchema } from '../../../../services/network/embedded/embedded-network.js'
import { kuboSchema } from '../../../../services/network/kubo/kubo-network.js'
import { paymentSchema } from '../../../../services/payment/store.js'
import { platformSchema } from '../../../../services/platform/store.js'
import { type CopyProgress, copyTables } from '../../../../services/store/copy/copy.js'
import {
  type CopiedService,
  type CopyLocation,
  openFolder,
  openServer,
} from '../../../../services/store/copy/locations.js'
import { tablesOf } from '../../../../services/store/copy/tables.js'
import type { Connection, Database, Schema } from '../../../../services/store/database.js'
import { openStore } from '../../../../services/store/open.js'
import { readPostgres } from '../../../../services/store/postgres.js'
import { postgres } from '../../../src/state/servers.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { newDatabase } from '../../engine.js'

const schema = (name: string): Schema<Connection> => ({
  owner: `the ${name} service`,
  name,
  steps: [
    `CREATE TABLE boxes (id INTEGER PRIMARY KEY AUTOINCREMENT, "user" TEXT NOT NULL, big INTEGER, part REAL, bytes BLOB) STRICT;
    CREATE TABLE a_parts (box INTEGER NOT NULL REFERENCES boxes (id), name TEXT NOT NULL, digest BLOB NOT NULL,
      PRIMARY KEY (name, digest)) STRICT, WITHOUT ROWID;
    CREATE TABLE single (note TEXT) STRICT;`,
  ],
  tables: (connection) => connection,
})

const FIRST: CopiedService = { schema: schema('first'), file: 'first/first.db' }
const SECOND: CopiedService = {
  schema: schema('second'),
  file: 'second/second.db',
  inSqlite: ["INSERT INTO single (note) VALUES ('turned')"],
}
const SERVICES = [FIRST, SECOND]

/** More than two pages. */
const ROWS = 1203

type Where =
  | { readonly folder: string; readonly url?: undefined }
  | { readonly url: string; readonly folder?: undefined }

const openPlace = async ({ folder, url }: Where, create: boolean): Promise<CopyLocation> =>
  url === undefined ? openFolder(folder, { create }) : openServer(url, SERVICES, { create }, silentLog)

const openAt = ({ folder, url }: Where, service: CopiedService): Promise<Database<Connection>> => {
  const file = folder === undefined ? join(temporaryFolder(t), 'own.db') : join(folder, service.file)
  return openStore(service.schema as Schema<Connection>, { file, database: url }, silentLog)
}

async function copy(from: Where, to: Where, onProgress: (progress: CopyProgress) => void = () => {}) {
  const source = await openPlace(from, false)
  try {
    const target = await openPlace(to, true)
    try {
      return await copyTables(source, target, SERVICES, onProgress)
    } finally {
      await target.release()
    }
  } finally {
    await source.release()
  }
}

/** A folder with both services, whose rows have everything that engines may tell apart. */
async function filled(t: Test): Promise<Where> {
  const where = { folder: temporaryFolder(t) }
  const place = await openPlace(where, true)
  for (const service of SERVICES) {
    const db = await place.fill(service)
    await db.transaction(async (connection) => {
      const box = connection.prepare('INSERT INTO boxes ("user", big, part, bytes) VALUES (?, ?, ?, ?)')
      const part = connection.prepare('INSERT INTO a_parts (box, name, digest) VALUES (?, ?, ?)')
      for (let n = 1; n <= ROWS; n++) {
        await box.run(
          n % 2 ? `É${n}` : '',
          n % 3 ? 2n ** 60n + BigInt(n) : null,
          n / 7,
          n % 5 ? Buffer.of(n & 255, 0) : null,
        )
        await part.run(n, ['a', 'B', 'é', '', '\u{1f600}', "'?"][n % 6] ?? '', Buffer.from(`${n}`))
      }
      // Its number is not given again.
      await connection.prepare('DELETE FROM a_parts WHERE box = ?').run(ROWS)
      await connection.prepare('DELETE FROM boxes WHERE id = ?').run(ROWS)
      for (const note of ['b', null, 'a', null])
        await connection.prepare('INSERT INTO single (note) VALUES (?)').run(note)
    })
    await db.close()
  }
  await place.release()
  return where
}

async function addBox(where: Where, chosen?: number): Promise<number> {
  const db = await openAt(where, SECOND)
  const [columns, values] = chosen === undefined ? ['', ''] : ['id, ', `${chosen}, `]
  const added = await db.transaction((connection) =>
    connection
      .prepare(`INSERT INTO boxes (${columns}"user") VALUES (${values}'new') RETURNING id`)
      .get<{ id: number }>(),
  )
  await db.close()
  return added?.id ?? 0
}

t.test('from a folder to PostgreSQL and back', { skip: postgres.skip }, async (t) => {
  const [from, url, back] = [await filled(t), { url: await newDatabase() }, { folder: temporaryFolder(t) }]
  const there = await copy(from, url)
  t.match(there, [
    { service: 'first', table: 'boxes', rows: ROWS - 1, hash: /^[0-9a-f]{64}$/ },
    { service: 'first', table: 'a_parts', rows: ROWS - 1 },
    { service: 'first', table: 'single', rows: 4 },
    { service: 'second', table: 'boxes' },
    { service: 'second', table: 'a_parts' },
    { service: 'second', table: 'single' },
  ])
  await t.rejects(
    openAt(from, FIRST),
    /are in PostgreSQL: start with --database/,
    'the source does not start by mistake',
  )
  const file = join(from.folder ?? '', FIRST.file)
  await (await openStore(FIRST.schema, { file, database: url.url }, silentLog)).close()
  t.same(await copy(url, back), there, 'and all rows are the same again')
  const notes = async (where: Where) => {
    const db = await openAt(where, SECOND)
    const rows = await db.read.prepare('SELECT note FROM single ORDER BY note NULLS FIRST').all<{ note: string }>()
    await db.close()
    return rows.map(({ note }) => note)
  }
  t.same(await notes(url), [null, null, 'a', 'b'])
  t.same(await notes(back), [null, null, 'a', 'b', 'turned'], 'what only PostgreSQL has is turned into what SQLite has')
  t.equal(await addBox(url), ROWS + 1, 'numbers go on behind the last one that was given')
  t.equal(await addBox(back), ROWS + 1)
  await addBox(url, 5000)
  const further = { folder: temporaryFolder(t) }
  await copy(url, further)
  t.equal(await addBox(further), 5001, 'also behind one that was chosen')
  for (const to of [url, back]) await t.rejects(copy(from, to), /has data of the first service already/)
})

for (const [name, to] of [
  ['a folder', async (t: Test): Promise<Where> => ({ folder: temporaryFolder(t) })],
  ['PostgreSQL', async (): Promise<Where> => ({ url: await newDatabase() })],
] as const) {
  t.test(`an interrupted copy to ${name}`, { skip: name === 'PostgreSQL' && postgres.skip }, async (t) => {
    const [from, target] = [await filled(t), await to(t)]
    for (const [step, service, table] of [
      ['copying', 'first', 'a_parts'],
      ['copying', 'second', 'boxes'],
      ['comparing', 'second', 'a_parts'],
    ]) {
      await t.rejects(
        copy(from, target, (progress) => {
          if (progress.step === step && progress.service === service && progress.table === table)
            throw new Error('stop')
        }),
        /^stop$/,
      )
      for (const one of SERVICES) await t.rejects(openAt(target, one), /is not complete: repeat `dealgate state copy`/)
    }
    await t.rejects(copy(await filled(t), target), /is that of .*, and is not complete/, 'another one is refused')
    await t.rejects(copy(target, { folder: temporaryFolder(t) }), /cannot be copied/)
    const pages: CopyProgress[] = []
    t.match(await copy(from, target, (progress) => pages.push(progress)), [{ rows: ROWS - 1 }])
    t.same(
      pages.filter(({ step, table }) => step === 'copying' && table !== 'single'),
      [],
      'what was copied before is not copied again',
    )
    await (await openAt(target, FIRST)).close()
  })
}

t.test('a source that has changed since is found', async (t) => {
  const [from, target] = [await filled(t), { folder: temporaryFolder(t) }]
  await t.rejects(
    copy(from, target, ({ step }) => {
      if (step === 'comparing') throw new Error('stop')
    }),
    /^stop$/,
  )
  const db = await openAt(from, SECOND)
  await db.transaction((connection) => connection.prepare('UPDATE boxes SET big = 1 WHERE id = 7').run())
  await db.close()
  await t.rejects(copy(from, target), /The table boxes of the second service .* has changed since/)
})

t.test('places that are in use', async (t) => {
  const from = await filled(t)
  const place = await openPlace(from, false)
  await t.rejects(copy(from, { folder: temporaryFolder(t) }), { code: 'DATA_IN_USE' })
  await place.release()
  await t.rejects(copy({ folder: temporaryFolder(t) }, { folder: temporaryFolder(t) }), /nothing to copy/)
  await t.rejects(copy({ folder: join(temporaryFolder(t), 'none') }, { folder: temporaryFolder(t) }), /no folder/)
  if (postgres.skip) return
  const url = { url: await newDatabase() }
  const isUsed = /A service or another copy uses the database/
  const refused = () => t.rejects(openPlace(url, false), isUsed)
  await copy(from, url)
  const db = await openAt(url, SECOND)
  await db.read.prepare('SELECT 1 AS one').get()
  await refused()
  await db.close()
  const held = await openPlace(url, false)
  await refused()
  let started = false
  const starting = openAt(url, SECOND).then((db) => {
    started = true
    return db
  })
  await held.requireHeld()
  t.notOk(started, 'a service that starts waits for the end of the copy')
  const late = readPostgres(url.url, FIRST.schema, silentLog)
  await (late.read as Connection).prepare('SELECT 1 AS one').get()
  await t.rejects(held.requireHeld(), isUsed, 'one that came in meanwhile')
  await late.close()
  await held.release()
  await (await starting).close()
})

t.test('a service without connections may come back while it has a lease', { skip: postgres.skip }, async (t) => {
  const url = { url: await newDatabase() }
  await copy(await filled(t), url)
  const db = await openAt(url, SECOND)
  await db.lease('work').take()
  await db.close()
  const client = new pg.Client(url.url)
  await client.connect()
  t.teardown(() => client.end())
  const expiresIn = (time: string) =>
    client.query(`UPDATE dealgate_second.lease SET expires = clock_timestamp() + interval '${time}'`)
  await expiresIn('1 hour')
  await t.rejects(openPlace(url, false), /A service or another copy uses the database/)
  await expiresIn('2 seconds')
  const held = await openPlace(url, false)
  await held.requireHeld()
  await expiresIn('1 hour')
  await t.rejects(held.requireHeld(), /A service or another copy uses the database/, 'one that came back meanwhile')
  await held.release()
})

t.test('a process that comes back to life changes no source', { skip: postgres.skip }, async (t) => {
  const url = { url: await newDatabase() }
  const only: Schema<Connection> = { ...schema('second'), exclusive: true }
  const db = await openStore(only, { file: join(temporaryFolder(t), 'own.db'), database: url.url }, silentLog)
  const token = `SELECT token FROM lease WHERE name = 'everything'`
  const tokenOf = async (database: Database<Connection>) => database.read.prepare(token).get<{ token: number }>()
  const before = await tokenOf(db)
  await db.close()
  await (await openPlace(url, false)).release()
  const after = await openAt(url, SECOND)
  t.same(await tokenOf(after), { token: (before?.token ?? 0) + 1 }, 'what its transactions check')
  await after.close()
})

t.test('the engines agree on the tables of the services', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const folder = temporaryFolder(t)
  for (const [n, own] of [indexSchema, embeddedSchema, kuboSchema, platformSchema, paymentSchema].entries()) {
    const plain: Schema<Connection> = { ...own, tables: (connection) => connection }
    const one = await openStore(plain, { file: join(folder, `${n}.db`) }, silentLog)
    const other = await openStore(plain, { file: join(folder, `there-${n}.db`), database: url }, silentLog)
    const [first, second] = [await tablesOf(one.read, 'sqlite'), await tablesOf(other.read, 'postgres')]
    t.ok(first.length > 2)
    t.same(second, first)
    const keyless = first.filter(({ key }) => key.length === 0).map(({ name }) => name)
    t.same(keyless, own === indexSchema ? ['body_folder'] : [], 'each has a key, but one of a single row')
    await one.close()
    await other.close()
  }
})

t.test('no service starts where a copy begins, until the copy is refused', { skip: postgres.skip }, async (t) => {
  const [from, url] = [await filled(t), { url: await newDatabase() }]
  const place = await openPlace(url, true)
  await (await place.fill(FIRST)).close()
  await t.rejects(openAt(url, FIRST), /is not complete/, 'it has not begun')
  await place.release()
  await addBox(url)
  await t.rejects(copy(from, url), /has data of the second service already/)
  await (await openAt(url, FIRST)).close()
})

t.test('a copy holds its source for as long as it takes', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET idle_session_timeout = '100ms'`)
  await client.end()
  const held = await openPlace({ url }, false)
  await sleep(500)
  await t.resolves(held.requireHeld(), 'whatever ends idle sessions')
  await held.release()
})

t.test('pages have few bytes', async (t) => {
  const from = { folder: temporaryFolder(t) }
  const place = await openPlace(from, true)
  const db = await place.fill(FIRST)
  const large = Buffer.alloc(2 * 2 ** 20, 7)
  await db.transaction(async (connection) => {
    const box = connection.prepare(`INSERT INTO boxes (bytes, "user") VALUES (?, 'é')`)
    for (const bytes of [large, null, large, large, large, large]) await box.run(bytes)
  })
  await db.close()
  await place.release()
  const places: Where[] = [from, { folder: temporaryFolder(t) }]
  if (!postgres.skip) places.push({ url: await newDatabase() }, { folder: temporaryFolder(t) })
  for (let n = 1; n < places.length; n++) {
    const rows: number[] = []
    await copy(places[n - 1] as Where, places[n] as Where, (progress) => {
      if (progress.step === 'copying' && progress.table === 'boxes') rows.push(progress.rows)
    })
    t.same(rows, [3, 5, 6])
  }
})
