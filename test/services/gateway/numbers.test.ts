import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { Clock, rfc3339 } from '../../../services/clock.js'
import { type GatewayTables, indexSchema } from '../../../services/gateway/index-schema.js'
import { type BucketNumbers, Tally } from '../../../services/gateway/store/bucket-numbers.js'
import type { BucketRow } from '../../../services/gateway/store/buckets.js'
import { Fences } from '../../../services/gateway/store/fences.js'
import { Holds } from '../../../services/gateway/store/holds.js'
import { anyKeys } from '../../../services/gateway/store/key-rules.js'
import { ObjectChanges } from '../../../services/gateway/store/object-changes.js'
import { newGeneration } from '../../../services/gateway/store/object-row.js'
import { silentLog } from '../../../services/log.js'
import type { Bodies } from '../../../services/store/bodies.js'
import type { Database } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { Run } from '../../../services/store/runs.js'
import { openSqlite } from '../../../services/store/sqlite.js'
import { verifyData } from '../../../services/verify.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase, onPostgres } from '../engine.js'

/** The numbers that the gateway keeps of each bucket, on both engines. */

const OWNER = 1
const clock = new Clock()
const noBodies = { committed() {}, leave() {}, discard() {} } as unknown as Bodies

interface Index {
  readonly db: Database<GatewayTables>
  readonly changes: ObjectChanges
}

/** Two connections to one index, as two processes have. */
async function connections(t: Test): Promise<Index[]> {
  const place = { file: join(temporaryFolder(t), 'index.db'), database: await emptyDatabase() }
  const indexes: Index[] = []
  for (let n = 0; n < 2; n++) {
    const db = await openStore(indexSchema, place, silentLog)
    const run = await Run.begin(db)
    t.teardown(() => run.end().finally(() => db.close()))
    const holds = new Holds(db, noBodies, run, silentLog)
    indexes.push({ db, changes: new ObjectChanges(db, noBodies, clock, anyKeys, holds, new Fences(clock)) })
  }
  return indexes
}

/** A count row by row, by other statements than those of the gateway. */
async function walked({ read }: Database<GatewayTables>, { id }: BucketRow): Promise<BucketNumbers> {
  const sum = { objects: 0, bytes: 0, currentObjects: 0, currentBytes: 0, markers: 0, versionBytes: 0 }
  const [from, to] = [Buffer.alloc(0), Buffer.from([0xff])]
  for (const row of await read.versions.page(id, { key: from, id: '' }, to, 100_000, false)) {
    sum.objects++
    sum.bytes += row.bodyAt === 'network' ? 0 : row.size
    if (row.id === '') {
      sum.currentObjects++
      sum.currentBytes += row.size
    } else if (row.isMarker) sum.markers++
    else sum.versionBytes += row.size
  }
  return sum
}

async function kept({ read }: Database<GatewayTables>, { name }: BucketRow): Promise<BucketNumbers> {
  const [found] = await read.buckets.describe(OWNER, [name])
  const { objects, bytes, currentObjects, currentBytes, markers, versionBytes } = found as BucketNumbers
  return { objects, bytes, currentObjects, currentBytes, markers, versionBytes }
}

/** The same sequence each time: what fails can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const change = async ({ db, changes }: Index, bucket: BucketRow, below: (most: number) => number): Promise<void> => {
  const key = Buffer.from(`key-${below(6)}`)
  const what = below(10)
  if (what < 6) {
    const body = Buffer.alloc(below(4) * 10, 'x')
    const facts = { key, size: body.length, etag: 'etag', contentType: 'text/plain', headers: {}, checksum: null }
    const generation = newGeneration(clock)
    await changes.put(bucket, { ...facts, generation, body, order: () => undefined, abandoned: () => false })
  } else if (what < 8) await changes.removeOne(bucket, key, undefined)
  else if (what === 8) await changes.remove(bucket, [key, Buffer.from(`key-${below(6)}`), Buffer.from('none')])
  else {
    const rows = await db.read.versions.page(
      bucket.id,
      { key, id: '' },
      Buffer.concat([key, Buffer.alloc(1)]),
      10,
      false,
    )
    const row = rows[below(rows.length)]
    if (row) await changes.removeOne(bucket, key, undefined, { id: row.version ?? 'null', bypass: true })
  }
}

t.test('the numbers of buckets are those of a count, whatever has changed', async (t) => {
  const indexes = await connections(t)
  const [{ db }] = indexes as [Index]
  const made = await db.transaction(async ({ buckets }) => {
    for (const name of ['plain', 'versioned', 'switched']) await buckets.add(name, rfc3339(clock.now()), OWNER)
    return Promise.all(['plain', 'versioned', 'switched'].map((name) => buckets.find(name) as Promise<BucketRow>))
  })
  const [plain, versioned, switched] = made as [BucketRow, BucketRow, BucketRow]
  await db.transaction(({ buckets }) => buckets.setVersioning(versioned.id, 'Enabled'))
  const below = random(47)
  for (let round = 0; round < 12; round++) {
    if (round % 3 === 1)
      await db.transaction(({ buckets }) => buckets.setVersioning(switched.id, round % 2 ? 'Enabled' : 'Suspended'))
    const ended = await Promise.allSettled(
      Array.from({ length: 40 }, (_, n) =>
        change(indexes[n % 2] as Index, [plain, versioned, switched][n % 3] as BucketRow, below),
      ),
    )
    const failed = ended.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))
    t.same(failed, [], `round ${round}`)
    if (round === 7) await db.transaction(({ buckets }) => buckets.fold(versioned.id))
  }
  for (const bucket of [plain, versioned, switched]) {
    const counted = await walked(db, bucket)
    t.ok(counted.objects > 0, bucket.name)
    t.same(await kept(db, bucket), counted, bucket.name)
  }
  const found = await walked(db, switched)
  t.ok(found.markers > 0 && found.versionBytes > 0, 'all kinds of rows are among them')
  t.same(await db.read.buckets.miscounted(), [])
})

t.test('wrong numbers are found, and counted anew', async (t) => {
  const [index] = (await connections(t)) as [Index]
  const { db } = index
  const bucket = await db.transaction(async ({ buckets }) => {
    await buckets.add('bucket', rfc3339(clock.now()), OWNER)
    return (await buckets.find('bucket')) as BucketRow
  })
  const below = random(3)
  for (let n = 0; n < 30; n++) await change(index, bucket, below)
  const right = await kept(db, bucket)
  await db.transaction(({ buckets }) => buckets.count(bucket.id, Tally.ofBytes(7)))
  t.match(await db.read.buckets.miscounted(), [{ name: 'bucket', keptBytes: right.bytes + 7, bytes: right.bytes }])
  await db.transaction(({ buckets }) => buckets.recount(bucket.id))
  t.same(await kept(db, bucket), right)
})

const inSqlite = onPostgres ? 'in SQLite' : false

t.test('an upgrade counts what there is', { skip: inSqlite }, async (t) => {
  const folder = join(temporaryFolder(t), 'gateway')
  mkdirSync(folder)
  const file = join(folder, 'index.db')
  const before = { ...indexSchema, steps: indexSchema.steps.slice(0, -1), tables: () => ({}) }
  await openSqlite(file, before).close()
  const sql = new DatabaseSync(file)
  sql.exec(`
    INSERT INTO buckets (id, name, created, changed, owner, objects, bytes) VALUES (1, 'full', '', '', 1, 1003, 4600);
    INSERT INTO buckets (id, name, created, changed, owner) VALUES (2, 'empty', '', '', 1);
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)
      INSERT INTO objects (bucket, key, size, modified, generation, etag, content_type, body_at)
      SELECT 1, CAST('k' || n AS BLOB), 5, '', 'g' || n, '', '', CASE WHEN n <= 100 THEN 2 ELSE 0 END FROM n;
    INSERT INTO versions (bucket, key, id, marker, since, size, modified, generation, etag, content_type, body_at) VALUES
      (1, CAST('k1' AS BLOB), 'a', 0, '', 60, '', 'v1', '', '', 0),
      (1, CAST('k1' AS BLOB), 'b', 0, '', 40, '', 'v2', '', '', 0),
      (1, CAST('k0' AS BLOB), 'c', 1, '', 0, '', 'v3', '', '', 1);
  `)
  sql.close()
  const db = openSqlite(file, indexSchema)
  t.teardown(() => db.close())
  const [empty, full] = await db.read.buckets.describe(OWNER, ['full', 'empty', 'none'])
  t.match(full, { currentObjects: 1000, currentBytes: 5000, markers: 1, versionBytes: 100, objects: 1003 })
  t.match(empty, { currentObjects: 0, currentBytes: 0, markers: 0, versionBytes: 0, objects: 0 })
  t.same(await db.read.buckets.describe(2, ['full']), [], 'buckets of another owner are not shown')
  t.same(await db.read.buckets.miscounted(), [])
})

t.test('state verify counts buckets', { skip: inSqlite }, async (t) => {
  const data = temporaryFolder(t)
  mkdirSync(join(data, 'gateway'))
  const file = join(data, 'gateway', 'index.db')
  await openSqlite(file, indexSchema).close()
  const sql = new DatabaseSync(file)
  sql.exec(
    "INSERT INTO buckets (name, created, changed, owner, objects, current_objects) VALUES ('off', '', '', 1, 4, 3)",
  )
  sql.close()
  const verify = (keeps: boolean) => verifyData({ data, database: undefined, bodies: undefined, keeps }, () => {})
  const wrong = { miscounted: [{ name: 'off', keptObjects: 4, objects: 0 }] }
  t.match(await verify(false), wrong)
  t.match(await verify(true), wrong, 'without a change it stays so')
  t.match(await verify(false), { miscounted: [] })
})
