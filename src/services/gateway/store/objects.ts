import { randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.js'
import { type Database, statements } from '../../database.js'
import { generationOf, type StoredBody } from '../../store/bodies.js'
import type { LastWrite } from './fences.js'

/** Where a body is stored, by the number in the column: in a body of its own, in the index, or in deals only. */
const places = ['file', 'index', 'network'] as const

type BodyAt = (typeof places)[number]

export interface ListedObject {
  /** UTF-8. */
  readonly key: Buffer
  readonly size: number
  /** RFC 3339, nanoseconds. */
  readonly modified: string
  /** Identifies this body; unique for each upload and never reused. */
  readonly generation: string
  /** Unquoted. */
  readonly etag: string
  readonly contentType: string
  readonly bodyAt: BodyAt
}

export interface ObjectRow extends ListedObject {
  /** Headers to return on download, by lower-case name. Each character of a value is one byte. */
  readonly headers: Readonly<Record<string, string>>
  /** Fence of the write that stored the object. */
  readonly fence: number
  readonly writeId: string | null
  /** Of the body, if it is one of its own. */
  readonly bodyName: string
  readonly bodyMark: string | null
}

/** A body without a row, and where it is stored. */
export type Freed = Pick<ObjectRow, 'generation' | 'bodyAt' | 'size' | 'bodyName' | 'bodyMark'>

type Stored = Pick<ObjectRow, 'bodyName' | 'size' | 'bodyMark'>

export function storedBodyOf({ bodyName: name, size, bodyMark: mark }: Stored): StoredBody {
  return { name, size, mark }
}

/** Returns a unique name: 16 digits of time and 16 random digits. */
export function newGeneration(clock: Clock): string {
  return clock.now().toString(16).padStart(16, '0') + randomBytes(8).toString('hex')
}

export function bytesHere({ bodyAt, size }: Pick<Freed, 'bodyAt' | 'size'>): number {
  return bodyAt === 'network' ? 0 : size
}

/**
 * Steps from one group of keys to the next with one index search per group, however many keys the group has. The next
 * key is the first one above the last key, or, where that has a common prefix, above the prefix followed by 0xff, which
 * no UTF-8 text contains.
 * Parameters: bucket, first key, upper bound, maximum number of rows, position in the key (from 1) from which the
 * delimiter is searched, delimiter.
 */
export const groupedPage = `
  WITH RECURSIVE walk (key) AS (
    SELECT (SELECT key FROM objects WHERE bucket = ?1 AND key >= ?2 AND key < ?3 ORDER BY key LIMIT 1)
    UNION ALL
    SELECT (
      SELECT o.key FROM objects AS o
      WHERE o.bucket = ?1 AND o.key < ?3 AND o.key > CASE instr(substr(walk.key, ?5), ?6)
        WHEN 0 THEN walk.key
        ELSE CAST(substr(walk.key, 1, ?5 + instr(substr(walk.key, ?5), ?6) + length(?6) - 2) || x'ff' AS BLOB)
      END
      ORDER BY o.key LIMIT 1
    )
    FROM walk WHERE walk.key IS NOT NULL LIMIT ?4
  )
  SELECT o.key, o.size, o.modified, o.generation, o.etag, o.content_type, o.body_at
  FROM walk CROSS JOIN objects AS o ON o.bucket = ?1 AND o.key = walk.key
`

const LISTED =
  "'name', CAST(key AS TEXT), 'lastModified', modified, 'size', size, 'contentType', content_type, 'etag', etag, 'generation', generation"

/**
 * The objects of a range in byte order, each as web.ListObjects describes it, in JSON. To fetch seven values of each
 * row and to write them in JavaScript takes twice as long.
 * Parameters: bucket, first key, upper bound, maximum number of rows.
 */
const listedAsJson = `
  SELECT CASE body_at WHEN 2 THEN json_object(${LISTED}, 'cold', json('true')) ELSE json_object(${LISTED}) END
  FROM objects WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?
`

const BODY_NAME = 'coalesce(body_name, generation)'
const BODY = `${BODY_NAME} AS bodyName, body_mark AS bodyMark`

/** The table of objects. Call writing methods inside a transaction. */
export class Objects {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      find: `SELECT key, size, modified, generation, etag, content_type AS contentType, headers, body_at AS bodyAt, fence, write_id AS writeId, ${BODY} FROM objects WHERE bucket = ? AND key = ?`,
      put: 'INSERT INTO objects (bucket, key, size, modified, generation, etag, content_type, headers, body_at, fence, write_id, body_name, body_mark) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      remove: `DELETE FROM objects WHERE bucket = ? AND key = ? RETURNING generation, body_at AS bodyAt, size, ${BODY}`,
      body: 'SELECT body FROM bodies WHERE generation = ?',
      putBody: 'INSERT INTO bodies (generation, body) VALUES (?, ?)',
      removeBody: 'DELETE FROM bodies WHERE generation = ?',
      move: 'UPDATE objects SET body_at = ?, body_name = ?, body_mark = ? WHERE bucket = ? AND key = ?',
      last: 'SELECT generation, fence, write_id AS writeId FROM objects WHERE bucket = ? AND key = ?',
      page: 'SELECT key, size, modified, generation, etag, content_type, body_at FROM objects WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?',
      jsonPage: listedAsJson,
      groupedPage: groupedPage,
      storedBody: `SELECT ${BODY_NAME} AS name, size, body_mark AS mark FROM objects WHERE generation = ? AND body_at = 0`,
      within: 'SELECT 1 FROM objects WHERE bucket = ? AND key >= ? AND key < ? LIMIT 1',
      record: 'SELECT record FROM object_records WHERE generation = ?',
      putRecord: 'INSERT OR REPLACE INTO object_records (generation, record) VALUES (?, ?)',
      removeRecord: 'DELETE FROM object_records WHERE generation = ?',
      raise: 'UPDATE objects SET fence = ? WHERE bucket = ? AND key = ?',
    })
    this.#sql.groupedPage.setReturnArrays(true)
    this.#sql.jsonPage.setReturnArrays(true)
    this.#sql.page.setReturnArrays(true)
  }

  find(bucket: number, key: Buffer): ObjectRow | undefined {
    const row = this.#sql.find.get(bucket, key)
    if (row === undefined) return undefined
    return {
      ...row,
      key,
      headers: row.headers === null ? {} : JSON.parse(row.headers),
      bodyAt: placeOf(row.bodyAt),
    }
  }

  /** Adds an object. An object of the same key must have been removed with `remove` before. */
  put(bucket: number, row: ObjectRow, body: Buffer | undefined, record?: string): void {
    const headers = Object.keys(row.headers).length === 0 ? null : JSON.stringify(row.headers)
    const { key, size, modified, generation, etag, contentType, bodyAt, fence, writeId } = row
    const at = places.indexOf(bodyAt)
    const name = row.bodyName === generation ? null : row.bodyName
    const stored = [name, row.bodyMark]
    this.#sql.put.run(
      bucket,
      key,
      size,
      modified,
      generation,
      etag,
      contentType,
      headers,
      at,
      fence,
      writeId,
      ...stored,
    )
    if (body !== undefined) this.#sql.putBody.run(generation, body)
    if (record !== undefined) this.#sql.putRecord.run(generation, record)
  }

  /** Changes where the body of the object is stored: in the index, in a body of its own, or in deals only. */
  move(bucket: number, { key, generation }: ObjectRow, body: Buffer | StoredBody | undefined): void {
    const inIndex = Buffer.isBuffer(body)
    const bodyAt: BodyAt = inIndex ? 'index' : body === undefined ? 'network' : 'file'
    const { name = null, mark = null } = inIndex || body === undefined ? {} : body
    this.#sql.move.run(places.indexOf(bodyAt), name, mark, bucket, key)
    if (inIndex) this.#sql.putBody.run(generation, body)
  }

  /** Fence, write id and generation of the last write to a key that has an object. */
  lastWrite(bucket: number, key: Buffer): (LastWrite & { readonly generation: string }) | undefined {
    return this.#sql.last.get(bucket, key)
  }

  /** What a client keeps with the object of this generation. */
  recordOf(generation: string): string | undefined {
    return this.#sql.record.get(generation)?.record
  }

  /** Keeps a record with the object, or none (''), as the last write to its key. */
  keepRecord(bucket: number, key: Buffer, generation: string, record: string, fence: number): void {
    if (record === '') this.#sql.removeRecord.run(generation)
    else this.#sql.putRecord.run(generation, record)
    this.#sql.raise.run(fence, bucket, key)
  }

  /** Removes the row and its record; the caller removes the body. */
  remove(bucket: number, key: Buffer): Freed | undefined {
    const row = this.#sql.remove.get(bucket, key)
    if (row === undefined) return undefined
    this.#sql.removeRecord.run(row.generation)
    return { ...row, bodyAt: placeOf(row.bodyAt) }
  }

  removeBody(generation: string): void {
    this.#sql.removeBody.run(generation)
  }

  inlineBody(generation: string): Buffer | undefined {
    const row = this.#sql.body.get(generation)
    return row === undefined ? undefined : asBuffer(row.body)
  }

  /** Objects with `from` <= key < `to`, in byte order of their keys. */
  page(bucket: number, from: Buffer, to: Buffer, limit: number): ListedObject[] {
    return this.#sql.page.all(bucket, from, to, limit).map(listed)
  }

  /** Like `page`, but returns each object as web.ListObjects describes it, in JSON. */
  pageAsJson(bucket: number, from: Buffer, to: Buffer, limit: number): string[] {
    return this.#sql.jsonPage.all(bucket, from, to, limit).map(([text]: [string]) => text)
  }

  /**
   * Like `page`, but returns only the first of the objects that share their key up to and including the first
   * `delimiter` behind `prefixLength` bytes.
   */
  groupedPage(
    bucket: number,
    from: Buffer,
    to: Buffer,
    limit: number,
    prefixLength: number,
    delimiter: Buffer,
  ): ListedObject[] {
    return this.#sql.groupedPage.all(bucket, from, to, limit, prefixLength + 1, delimiter).map(listed)
  }

  /** True when an object with `from` <= key < `to` exists. */
  anyWithin(bucket: number, from: Buffer, to: Buffer): boolean {
    return this.#sql.within.get(bucket, from, to) !== undefined
  }

  /** The body of this generation, if it is one of its own and an object has it. */
  storedBody(generation: string): StoredBody | undefined {
    return this.#sql.storedBody.get(generation)
  }

  /** True when an object has the body of this name. */
  namesBody(name: string): boolean {
    return this.storedBody(generationOf(name))?.name === name
  }
}

type ListedRow = [Uint8Array, number, string, string, string, string, number]

function listed([key, size, modified, generation, etag, contentType, bodyAt]: ListedRow): ListedObject {
  return { key: asBuffer(key), size, modified, generation, etag, contentType, bodyAt: placeOf(bodyAt) }
}

function placeOf(number: number): BodyAt {
  const place = places[number]
  if (place === undefined) throw new Error(`The index holds an unknown place of a body: ${number}.`)
  return place
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
