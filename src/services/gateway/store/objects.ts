import type { Database } from '../../database.js'

/** Where a body lies, by the number that stands for it: in a file named by the generation, in the index, or nowhere here but in deals. */
const places = ['file', 'index', 'network'] as const

export type BodyAt = (typeof places)[number]

/** What a listing tells of an object. */
export interface ListedObject {
  /** UTF-8. */
  readonly key: Buffer
  readonly size: number
  /** RFC 3339, nanoseconds. */
  readonly modified: string
  /** Names this very body: another one for each upload, never used twice. */
  readonly generation: string
  /** Unquoted. */
  readonly etag: string
  readonly contentType: string
  readonly bodyAt: BodyAt
}

export interface ObjectRow extends ListedObject {
  /** Headers to give back on download, by lower-case name; values hold one character for each byte. */
  readonly headers: Readonly<Record<string, string>>
}

/** A body that lost its row, and where it lies. */
export interface Freed {
  readonly generation: string
  readonly bodyAt: BodyAt
  readonly size: number
}

/** Bytes that the body takes on the disk. */
export function bytesHere({ bodyAt, size }: Pick<Freed, 'bodyAt' | 'size'>): number {
  return bodyAt === 'network' ? 0 : size
}

/**
 * Steps from one group of keys to the next with one search of the tree each, however many keys the group has: the next key is the first one above
 * the last, or, where that has a common prefix, above the prefix and 0xff, which no UTF-8 text contains.
 * Parameters: bucket, first key, upper bound, rows at most, where in the key (from 1) the delimiter is looked for, delimiter.
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

/** The table of objects. Writing methods belong inside a transaction. */
export class Objects {
  readonly #find
  readonly #put
  readonly #remove
  readonly #body
  readonly #putBody
  readonly #removeBody
  readonly #move
  readonly #page
  readonly #groupedPage
  readonly #hasFile
  readonly #within

  constructor(db: Database) {
    this.#find = db.prepare(
      'SELECT key, size, modified, generation, etag, content_type AS contentType, headers, body_at AS bodyAt FROM objects WHERE bucket = ? AND key = ?',
    )
    this.#put = db.prepare(
      'INSERT INTO objects (bucket, key, size, modified, generation, etag, content_type, headers, body_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    this.#remove = db.prepare(
      'DELETE FROM objects WHERE bucket = ? AND key = ? RETURNING generation, body_at AS bodyAt, size',
    )
    this.#body = db.prepare('SELECT body FROM bodies WHERE generation = ?')
    this.#putBody = db.prepare('INSERT INTO bodies (generation, body) VALUES (?, ?)')
    this.#removeBody = db.prepare('DELETE FROM bodies WHERE generation = ?')
    this.#move = db.prepare('UPDATE objects SET body_at = ? WHERE bucket = ? AND key = ?')
    this.#page = db.prepare(
      'SELECT key, size, modified, generation, etag, content_type, body_at FROM objects WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?',
    )
    this.#page.setReturnArrays(true)
    this.#groupedPage = db.prepare(groupedPage)
    this.#groupedPage.setReturnArrays(true)
    this.#hasFile = db.prepare('SELECT 1 FROM objects WHERE generation = ? AND body_at = 0')
    this.#within = db.prepare('SELECT 1 FROM objects WHERE bucket = ? AND key >= ? AND key < ? LIMIT 1')
  }

  find(bucket: number, key: Buffer): ObjectRow | undefined {
    const row = this.#find.get(bucket, key)
    if (row === undefined) return undefined
    return {
      ...row,
      key,
      headers: row.headers === null ? {} : JSON.parse(row.headers),
      bodyAt: placeOf(row.bodyAt),
    }
  }

  /** An object of this key must have been taken out with `remove`. */
  put(bucket: number, row: ObjectRow, body: Buffer | undefined): void {
    const headers = Object.keys(row.headers).length === 0 ? null : JSON.stringify(row.headers)
    const { key, size, modified, generation, etag, contentType, bodyAt } = row
    this.#put.run(bucket, key, size, modified, generation, etag, contentType, headers, places.indexOf(bodyAt))
    if (body !== undefined) this.#putBody.run(generation, body)
  }

  /** Says where the body of this object lies from now on; `body` when that is the index. */
  move(bucket: number, { key, generation }: ObjectRow, bodyAt: BodyAt, body?: Buffer): void {
    this.#move.run(places.indexOf(bodyAt), bucket, key)
    if (body !== undefined) this.#putBody.run(generation, body)
  }

  /** Takes the row, and leaves the body to the caller. */
  remove(bucket: number, key: Buffer): Freed | undefined {
    const row = this.#remove.get(bucket, key)
    if (row === undefined) return undefined
    return { generation: row.generation, bodyAt: placeOf(row.bodyAt), size: row.size }
  }

  removeBody(generation: string): void {
    this.#removeBody.run(generation)
  }

  inlineBody(generation: string): Buffer | undefined {
    const row = this.#body.get(generation)
    return row === undefined ? undefined : asBuffer(row.body)
  }

  /** Objects with `from` <= key < `to`, in byte order. */
  page(bucket: number, from: Buffer, to: Buffer, limit: number): ListedObject[] {
    return this.#page.all(bucket, from, to, limit).map(listed)
  }

  /** The same, but of the objects that share their key up to and with the first `delimiter` behind `prefixLength` bytes, the first only. */
  groupedPage(
    bucket: number,
    from: Buffer,
    to: Buffer,
    limit: number,
    prefixLength: number,
    delimiter: Buffer,
  ): ListedObject[] {
    return this.#groupedPage.all(bucket, from, to, limit, prefixLength + 1, delimiter).map(listed)
  }

  /** True when there is an object with `from` <= key < `to`. */
  anyWithin(bucket: number, from: Buffer, to: Buffer): boolean {
    return this.#within.get(bucket, from, to) !== undefined
  }

  /** True when an object's body lies in the file of this name. */
  hasFile(generation: string): boolean {
    return this.#hasFile.get(generation) !== undefined
  }
}

type ListedRow = [Uint8Array, number, string, string, string, string, number]

function listed([key, size, modified, generation, etag, contentType, bodyAt]: ListedRow): ListedObject {
  return { key: asBuffer(key), size, modified, generation, etag, contentType, bodyAt: placeOf(bodyAt) }
}

function placeOf(number: number): BodyAt {
  const place = places[number]
  if (place === undefined) throw new Error(`The index names a place of bodies that there is not: ${number}.`)
  return place
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
