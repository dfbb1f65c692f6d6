import { BodyError, generationOf, type StoredBody } from '../../store/bodies.js'
import { type SumRows, sumOf } from '../../store/chunk-sums.js'
import { type Database, tableOf } from '../../store/database.js'
import type { KeptSums } from '../../store/verified-bodies.js'

/**
 * Checksums of the chunks of bodies that are not in the index, by generation: a body that is stored again has the same.
 * A row has those of 1024 chunks (`chunk-sums.ts`). `gone` says since when no row has the generation any more, in ms
 * since 1970; readers may go on for a while. A body in the index has its CRC-32 beside it; null if an earlier version
 * has stored it.
 */
export const sumsSchema = `
  CREATE TABLE body_sums (
    generation TEXT NOT NULL,
    n INTEGER NOT NULL,
    sums BLOB NOT NULL,
    gone INTEGER,
    PRIMARY KEY (generation, n)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX body_sums_gone ON body_sums (gone) WHERE gone IS NOT NULL;
  ALTER TABLE bodies ADD COLUMN crc INTEGER;
`

const NAMED = `
  SELECT generation FROM objects UNION SELECT generation FROM versions UNION SELECT generation FROM retained
`

/** The table of checksums. Call writing methods inside a transaction. */
export class BodySums extends tableOf({
  row: 'SELECT sums FROM body_sums WHERE generation = ? AND n = ?',
  rows: 'SELECT sums FROM body_sums WHERE generation = ? ORDER BY n',
  add: 'INSERT INTO body_sums (generation, n, sums) VALUES (?, ?, ?) ON CONFLICT (generation, n) DO NOTHING',
  letGo: 'UPDATE body_sums SET gone = ? WHERE generation = ?',
  letGoUnnamed: `UPDATE body_sums SET gone = ? WHERE gone IS NULL AND generation NOT IN (${NAMED})`,
  oldest: 'SELECT min(gone) AS gone FROM body_sums WHERE gone IS NOT NULL',
  prune: 'DELETE FROM body_sums WHERE gone <= ?',
}) {
  async row(generation: string, n: number): Promise<Uint8Array | undefined> {
    return (await this.sql.row.get<{ sums: Uint8Array }>(generation, n))?.sums
  }

  /** All rows of a body; none for one without checksums. */
  async rows(generation: string): Promise<SumRows> {
    return (await this.sql.rows.all<{ sums: Uint8Array }>(generation)).map(({ sums }) => Buffer.from(sums))
  }

  /** Keeps checksums of a body unless there are some. */
  async add(generation: string, sums: SumRows = []): Promise<void> {
    await Promise.all(sums.map((row, n) => this.sql.add.run(generation, n, row)))
  }

  /** Notes that no row has the generation any more. */
  async letGo(generation: string): Promise<void> {
    await this.sql.letGo.run(Date.now(), generation)
  }

  /** Notes it of those that a process of an earlier version has let go. Reads all rows of objects. */
  letGoUnnamed(): Promise<number> {
    return this.sql.letGoUnnamed.run(Date.now())
  }

  /** Since when no row has had the first of the generations that have none, ms since 1970. */
  async oldest(): Promise<number | undefined> {
    return (await this.sql.oldest.get<{ gone: number | null }>())?.gone ?? undefined
  }

  /** Removes those whose generation has been gone since then or for longer, ms since 1970. */
  async prune(until: number): Promise<void> {
    await this.sql.prune.run(until)
  }
}

interface SumsTables {
  readonly bodySums: BodySums
  readonly objects: { storedBody(generation: string): Promise<StoredBody | undefined> }
  readonly retained: { find(generation: string): Promise<StoredBody | undefined> }
}

/** The checksums of the bodies of an index. */
export function keptSums(db: Database<SumsTables>): KeptSums {
  return {
    row: (generation, n) => db.read.bodySums.row(generation, n),
    async adopt({ name }, sums) {
      const generation = generationOf(name)
      await db.transaction(async ({ bodySums, objects, retained }) => {
        const named = (await objects.storedBody(generation)) ?? (await retained.find(generation))
        if (named !== undefined) await bodySums.add(generation, sums)
      })
    },
  }
}

/** Removes the checksums of bodies that have been gone for this long. */
export async function pruneSums(db: Database<{ readonly bodySums: BodySums }>, ageMs: number): Promise<void> {
  const until = Date.now() - ageMs
  const oldest = await db.read.bodySums.oldest()
  if (oldest !== undefined && oldest <= until) await db.transaction(({ bodySums }) => bodySums.prune(until))
}

/** Throws BodyError unless a body in the index has its CRC-32. Null: an earlier version has stored it. */
export function mustHaveSum(generation: string, body: Uint8Array, crc: number | null): void {
  if (crc === null || sumOf(body) === crc) return
  throw new BodyError('changed', `The body ${generation} in the index has other bytes than were stored.`)
}
