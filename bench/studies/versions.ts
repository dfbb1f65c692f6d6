import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { indexSchema } from '../../services/gateway/index-schema.js'
import { scan } from '../../services/gateway/store/scan.js'
import { silentLog } from '../../services/log.js'
import type { Connection, Schema } from '../../services/store/database.js'
import { openStore, type StoreLocation } from '../../services/store/open.js'
import { postgres } from '../../test/src/state/servers.js'
import { interleaved } from '../cases/measure.js'
import { median } from './measure.js'

/** Objects of the index that gets the tables of versions. */
const MANY = 1_000_000
/** Rows of a statement: PostgreSQL ends one that takes long. */
const BATCH = 100_000
/** Of the bucket that is listed. */
const KEYS = 1000
const VERSIONS = 100
const [PLAIN, VERSIONED, UPGRADED] = [1, 2, 3]
/** The last step of the schema before versions. */
const BEFORE = indexSchema.steps.findIndex((step) => step.includes('CREATE TABLE versions'))

/** SQL of the engine, by a number `i`. */
const words = {
  sqlite: { key: (text: string) => `CAST(${text} AS BLOB)`, hex: (number: string) => `printf('%032x', ${number})` },
  postgres: {
    key: (text: string) => `convert_to(${text}, 'UTF8')`,
    hex: (number: string) => `lpad(to_hex((${number})::bigint), 32, '0')`,
  },
}
const numbers = (from: number, to: number) =>
  `(WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to}) SELECT i FROM n) AS n`

const SHARED = "1024, '2026-01-01T00:00:00.000000000Z'"

/** An index to fill, of the version before versions or of today. */
function filling(steps: readonly string[]) {
  const tables = ({ engine, prepare }: Connection) => {
    const { key, hex } = words[engine]
    const name = key("'folder/an-object-of-the-listing-' || i || '.txt'")
    return {
      objects: (bucket: number, from: number, to: number) =>
        prepare(
          `INSERT INTO objects (bucket, key, size, modified, generation, etag, content_type, body_at)
           SELECT ${bucket}, ${name}, ${SHARED}, ${hex(`i + ${bucket} * 10000000`)}, '${'e'.repeat(32)}', 'text/plain', 0
           FROM ${numbers(from, to)}`,
        ).run(),
      current: () => prepare(`UPDATE objects SET version = ${hex('1')} WHERE bucket = ${VERSIONED}`).run(),
      versions: (version: number) =>
        prepare(
          `INSERT INTO versions (bucket, key, id, since, size, modified, generation, etag, content_type, body_at)
           SELECT ${VERSIONED}, ${name}, ${hex(`${version} + 1`)}, '2026-01-01T00:00:00.000000000Z', ${SHARED},
             ${hex(`i + ${version + VERSIONED + 2} * 10000000`)}, '${'e'.repeat(32)}', 'text/plain', 0
           FROM ${numbers(1, KEYS)}`,
        ).run(),
    }
  }
  return { owner: 'the bench', name: indexSchema.name, steps, tables } satisfies Schema<ReturnType<typeof tables>>
}

/**
 * What versions cost the index, by the clock: the upgrade of one with 10^6 objects, and a page of current objects that
 * have 100 versions each against one of objects that have none. Each engine by itself.
 */
export async function versions(rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const server = await postgres.start()
  try {
    for (const [name, database] of [['SQLite'], ['PostgreSQL', server.url]] as const) {
      await mkdir(join(folder, name))
      const place = { file: join(folder, name, 'index.db'), database }
      console.log(`${name}: ${MANY} objects, the start that makes the tables of versions ${await upgrade(place)} s`)
      const { plain, versioned } = await listings(place, rounds)
      const ratio = (versioned / plain).toFixed(2)
      const pages = `without versions ${plain.toFixed(2)} ms, with ${VERSIONS} each ${versioned.toFixed(2)} ms`
      console.log(`${name}: a page of ${KEYS} current objects: ${pages}, ratio ${ratio}`)
    }
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function upgrade(place: StoreLocation): Promise<string> {
  const before = await openStore(filling(indexSchema.steps.slice(0, BEFORE)), place, silentLog)
  for (let from = 1; from <= MANY; from += BATCH)
    await before.transaction((tables) => tables.objects(UPGRADED, from, from + BATCH - 1))
  await before.close()
  const began = performance.now()
  await (await openStore(indexSchema, place, silentLog)).close()
  return ((performance.now() - began) / 1000).toFixed(2)
}

async function listings(place: StoreLocation, rounds: number): Promise<{ plain: number; versioned: number }> {
  const filled = await openStore(filling(indexSchema.steps), place, silentLog)
  for (const bucket of [PLAIN, VERSIONED]) await filled.transaction((tables) => tables.objects(bucket, 1, KEYS))
  await filled.transaction((tables) => tables.current())
  for (let version = 1; version < VERSIONS; version++) await filled.transaction((tables) => tables.versions(version))
  await filled.close()
  if (place.database !== undefined) {
    const client = new pg.Client(place.database)
    await client.connect()
    await client.query(`VACUUM ANALYZE dealgate_${indexSchema.name}.objects`)
    await client.end()
  }
  const db = await openStore(indexSchema, place, silentLog)
  const times = new Map([PLAIN, VERSIONED].map((bucket) => [bucket, [] as number[]]))
  const nothing = Buffer.alloc(0)
  await interleaved(rounds * 50, [PLAIN, VERSIONED], async (bucket) => {
    const began = performance.now()
    const query = { bucket, prefix: nothing, delimiter: nothing, after: nothing, limit: KEYS }
    const { entries } = await scan(db.read.objects, query)
    if (entries.length !== KEYS) throw new Error(`a page of ${entries.length} objects`)
    times.get(bucket)?.push(performance.now() - began)
  })
  await db.close()
  const of = (bucket: number) => median(times.get(bucket) ?? [])
  return { plain: of(PLAIN), versioned: of(VERSIONED) }
}
