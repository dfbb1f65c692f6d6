import type { StoredBody } from '../../store/bodies.js'
import { sumOf } from '../../store/chunk-sums.js'
import { type Connection, listed, statements } from '../../store/database.js'
import { mustHaveSum } from './body-sums.js'
import type { LastWrite } from './fences.js'
import { groupedPage, jsonPage, PAGE } from './object-pages.js'
import {
  asBuffer,
  BODY,
  BODY_NAME,
  type BodyColumns,
  type FoundRow,
  type FreedBody,
  foundRow,
  type ListedObject,
  type ListedRow,
  listedObject,
  type ObjectRow,
  type OpenedObject,
  placeOf,
  places,
  ROW,
  type RowExtras,
  toObjectEntry,
} from './object-row.js'

/** Parameter 3: 1 for one who may see it. */
const RECORD =
  'CASE WHEN ?3 = 1 THEN (SELECT record FROM object_records AS r WHERE r.generation = o.generation) END AS record'

/** Reads all versions in one statement: a row may move between the tables at any time. */
function ofBoth(select: string, where: string): string {
  return `${select} FROM objects ${where} UNION ALL ${select} FROM versions ${where}`
}

/** Removes an object, in PostgreSQL with its record. */
const remove = {
  sqlite: 'DELETE FROM objects WHERE bucket = ? AND key = ?',
  postgres: `
    WITH gone AS (DELETE FROM objects WHERE bucket = ? AND key = ? RETURNING generation)
    DELETE FROM object_records WHERE generation IN (SELECT generation FROM gone)
  `,
}

/** In SQLite, a new object takes the place of another one of its key. */
const into = { sqlite: 'INSERT OR REPLACE INTO objects', postgres: 'INSERT INTO objects' }

/** Whether there is a record to be removed, which PostgreSQL removes without a look. */
const hasRecord = {
  sqlite: 'EXISTS (SELECT 1 FROM object_records AS r WHERE r.generation = o.generation)',
  postgres: 'false',
}

/** The last write to a key, and the object that the key has. */
export interface CurrentObject extends LastWrite, FreedBody, Pick<ObjectRow, 'modified' | 'version'> {
  readonly hasRecord: boolean
}

/** A body in the index, if it is there. */
interface InlineRow {
  readonly body: Uint8Array | null
  readonly crc: number | null
}

function inlineOf(generation: string, { body, crc }: InlineRow): Buffer | undefined {
  if (body === null) return undefined
  mustHaveSum(generation, body, crc)
  return asBuffer(body)
}

type CurrentRow = Omit<CurrentObject, 'bodyAt' | 'hasRecord'> & {
  readonly bodyAt: number
  readonly hasRecord: number | boolean
}

/** The table of objects. Call writing methods inside a transaction. */
export class Objects {
  readonly #engine
  readonly #sql

  constructor(connection: Connection) {
    this.#engine = connection.engine
    this.#sql = statements(connection, {
      find: `SELECT ${ROW}, version FROM objects WHERE bucket = ? AND key = ?`,
      open: `
        SELECT ${ROW}, version, ${RECORD}, NULL AS body, NULL AS crc FROM objects AS o WHERE bucket = ?1 AND key = ?2
      `,
      openWithBody: `
        SELECT ${ROW}, version, ${RECORD}, body, crc FROM objects AS o
          LEFT JOIN (SELECT generation AS body_of, body, crc FROM bodies) AS b
            ON o.body_at = 1 AND b.body_of = o.generation
        WHERE bucket = ?1 AND key = ?2
      `,
      put: `${into[connection.engine]} (bucket, key, size, modified, generation, etag, content_type, headers, body_at, fence, write_id, body_name, body_mark, version, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      remove: remove[connection.engine],
      body: 'SELECT body, crc FROM bodies WHERE generation = ?',
      putBody: 'INSERT INTO bodies (generation, body, crc) VALUES (?, ?, ?)',
      replaceBody: 'UPDATE bodies SET generation = ?, body = ?, crc = ? WHERE generation = ?',
      removeBody: 'DELETE FROM bodies WHERE generation = ?',
      move: 'UPDATE objects SET body_at = ?, body_name = ?, body_mark = ? WHERE bucket = ? AND key = ?',
      last: `
        SELECT generation, fence, write_id AS "writeId", modified, version, size, body_at AS "bodyAt", ${BODY},
          ${hasRecord[connection.engine]} AS "hasRecord"
        FROM objects AS o WHERE bucket = ? AND key = ?
      `,
      page: PAGE,
      jsonPage: jsonPage[connection.engine],
      groupedPage: groupedPage[connection.engine],
      storedBody: ofBoth(
        `SELECT ${BODY_NAME} AS name, size, body_mark AS mark`,
        'WHERE generation = ?1 AND body_at = 0',
      ),
      bodies: ofBoth(`SELECT ${BODY_NAME} AS name`, `WHERE generation IN ${listed(connection)} AND body_at = 0`),
      within: 'SELECT 1 FROM objects WHERE bucket = ? AND key >= ? AND key < ? LIMIT 1',
      stored: `${ofBoth('SELECT 1', 'WHERE body_mark IS NOT NULL')} LIMIT 1`,
      putRecord:
        'INSERT INTO object_records (generation, record) VALUES (?, ?) ON CONFLICT (generation) DO UPDATE SET record = excluded.record',
      record: 'SELECT record FROM object_records WHERE generation = ?',
      removeRecord: 'DELETE FROM object_records WHERE generation = ?',
      raise: 'UPDATE objects SET fence = ? WHERE bucket = ? AND key = ?',
    })
  }

  async find(bucket: number, key: Buffer): Promise<ObjectRow | undefined> {
    const row = await this.#sql.find.get<FoundRow>(bucket, key)
    return row && foundRow(key, row)
  }

  /** Throws BodyError for a body in the index that has changed. */
  async open(bucket: number, key: Buffer, { body, record }: RowExtras): Promise<OpenedObject | undefined> {
    const { open, openWithBody } = this.#sql
    const row = await (body ? openWithBody : open).get<FoundRow & InlineRow & { record: string | null }>(
      bucket,
      key,
      record ? 1 : 0,
    )
    if (row === undefined) return undefined
    const { record: kept } = row
    return { row: foundRow(key, row), body: inlineOf(row.generation, row), record: kept ?? undefined }
  }

  /**
   * Adds an object. For one of the same key, `makeWay` must have been called before.
   * @param over a body in the index whose place the new one takes
   */
  async put(bucket: number, row: ObjectRow, body: Buffer | undefined, record?: string, over?: string): Promise<void> {
    const headers = Object.keys(row.headers).length === 0 ? null : JSON.stringify(row.headers)
    const { key, size, modified, generation, etag, contentType, bodyAt, fence, writeId } = row
    const at = places.indexOf(bodyAt)
    const name = row.bodyName === generation ? null : row.bodyName
    const stored = [name, row.bodyMark, row.version, row.checksum]
    const own = [bucket, key, size, modified, generation, etag, contentType, headers, at, fence, writeId]
    const added = this.#sql.put.run(...own, ...stored)
    await Promise.all([
      added,
      body === undefined ? undefined : this.putBody(generation, body, over),
      record === undefined ? undefined : this.#sql.putRecord.run(generation, record),
    ])
  }

  /** Changes where the body of the object is stored: the row alone. */
  async move(bucket: number, { key }: ObjectRow, [at, name, mark]: BodyColumns): Promise<void> {
    await this.#sql.move.run(at, name, mark, bucket, key)
  }

  /**
   * Adds a body to the index.
   * @param over the generation of one whose place it takes
   */
  async putBody(generation: string, body: Buffer, over?: string): Promise<void> {
    const { putBody, replaceBody } = this.#sql
    if (over !== undefined && (await replaceBody.run(generation, body, sumOf(body), over)) > 0) return
    await putBody.run(generation, body, sumOf(body))
  }

  /** The last write to a key that has an object, and what it has written. */
  async lastWrite(bucket: number, key: Buffer): Promise<CurrentObject | undefined> {
    const row = await this.#sql.last.get<CurrentRow>(bucket, key)
    return row && { ...row, bodyAt: placeOf(row.bodyAt), hasRecord: Boolean(row.hasRecord) }
  }

  /** Keeps a record with the object of this generation, or none (''). */
  async keepRecord(generation: string, record: string): Promise<void> {
    if (record === '') await this.#sql.removeRecord.run(generation)
    else await this.#sql.putRecord.run(generation, record)
  }

  /** What a client keeps with the object of this generation. */
  async record(generation: string): Promise<string | undefined> {
    return (await this.#sql.record.get<{ record: string }>(generation))?.record
  }

  /** Records a later write to the key that has left the object as it is. */
  async raise(bucket: number, key: Buffer, fence: number): Promise<void> {
    await this.#sql.raise.run(fence, bucket, key)
  }

  /** Removes the row and its record; the caller removes the body. */
  async remove(bucket: number, key: Buffer, present: Pick<CurrentObject, 'generation' | 'hasRecord'>): Promise<void> {
    await this.#sql.remove.run(bucket, key)
    if (this.#engine === 'sqlite' && present.hasRecord) await this.#sql.removeRecord.run(present.generation)
  }

  /** Does what `remove` does, as far as a `put` of the same key that follows does not. */
  async makeWay(bucket: number, key: Buffer, present: Pick<CurrentObject, 'generation' | 'hasRecord'>): Promise<void> {
    if (this.#engine === 'postgres') await this.remove(bucket, key, present)
    else if (present.hasRecord) await this.#sql.removeRecord.run(present.generation)
  }

  async removeBody(generation: string): Promise<void> {
    await this.#sql.removeBody.run(generation)
  }

  /** Throws BodyError for one that has changed. */
  async inlineBody(generation: string): Promise<Buffer | undefined> {
    const row = await this.#sql.body.get<InlineRow>(generation)
    return row && inlineOf(generation, row)
  }

  /** Objects with `from` <= key < `to`, in byte order of their keys. */
  async page(bucket: number, from: Buffer, to: Buffer, limit: number): Promise<ListedObject[]> {
    return (await this.#sql.page.arrays<ListedRow>(bucket, from, to, limit)).map(listedObject)
  }

  /** Like `page`, but returns each object as web.ListObjects describes it, in JSON. */
  async pageAsJson(bucket: number, from: Buffer, to: Buffer, limit: number): Promise<string[]> {
    if (this.#engine === 'postgres') {
      const page = await this.page(bucket, from, to, limit)
      return page.map((object) => JSON.stringify(toObjectEntry(object)))
    }
    return (await this.#sql.jsonPage.arrays<[string]>(bucket, from, to, limit)).map(([text]) => text)
  }

  /**
   * Like `page`, but returns only the first of the objects that share their key up to and including the first
   * `delimiter` behind `prefixLength` bytes.
   */
  async groupedPage(
    bucket: number,
    from: Buffer,
    to: Buffer,
    limit: number,
    prefixLength: number,
    delimiter: Buffer,
  ): Promise<ListedObject[]> {
    const { groupedPage } = this.#sql
    return (await groupedPage.arrays<ListedRow>(bucket, from, to, limit, prefixLength + 1, delimiter)).map(listedObject)
  }

  /** True when an object with `from` <= key < `to` exists. */
  async anyWithin(bucket: number, from: Buffer, to: Buffer): Promise<boolean> {
    return (await this.#sql.within.get(bucket, from, to)) !== undefined
  }

  /** True when the body of an object, or of a version of it, is in an S3 store. */
  async anyInStore(): Promise<boolean> {
    return (await this.#sql.stored.get()) !== undefined
  }

  /** The body of this generation, if it is one of its own and an object, or a version of it, has it. */
  storedBody(generation: string): Promise<StoredBody | undefined> {
    return this.#sql.storedBody.get<StoredBody>(generation)
  }

  /** Names of the bodies that objects of these generations have, or versions of them. */
  async bodiesOf(generations: readonly string[]): Promise<string[]> {
    return (await this.#sql.bodies.all<{ name: string }>(JSON.stringify(generations))).map(({ name }) => name)
  }
}
