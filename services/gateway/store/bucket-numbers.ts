import type { Connection } from '../../store/database.js'
import { bytesHere, type FreedBody } from './object-row.js'

/**
 * What counts for quotas: rows of objects, versions and delete markers, and the bytes of their bodies that are here,
 * which an object in deals alone has not.
 */
interface Content {
  readonly objects: number
  readonly bytes: number
}

/** What is in a bucket, wherever the bytes are. */
export interface BucketNumbers extends Content {
  readonly currentObjects: number
  /** Of the current objects. */
  readonly currentBytes: number
  /** Delete markers. */
  readonly markers: number
  /** Of the versions that are not current. */
  readonly versionBytes: number
}

type Row = Pick<FreedBody, 'bodyAt' | 'size'>

/** By how much a change alters the numbers of a bucket. */
export class Tally implements BucketNumbers {
  objects = 0
  bytes = 0
  currentObjects = 0
  currentBytes = 0
  markers = 0
  versionBytes = 0

  /** A change of the bytes that are here alone. */
  static ofBytes(bytes: number): Tally {
    const tally = new Tally()
    tally.bytes = bytes
    return tally
  }

  get isEmpty(): boolean {
    const isSame = this.objects === 0 && this.currentObjects === 0 && this.markers === 0
    return isSame && this.bytes === 0 && this.currentBytes === 0 && this.versionBytes === 0
  }

  /** @param by 1 for a new current object, -1 for one that is gone or another version by now */
  current(row: Row, by: 1 | -1): void {
    this.objects += by
    this.bytes += by * bytesHere(row)
    this.currentObjects += by
    this.currentBytes += by * row.size
  }

  /** @param by as of `current` */
  version(row: Row, by: 1 | -1): void {
    this.objects += by
    this.bytes += by * bytesHere(row)
    this.versionBytes += by * row.size
  }

  /** @param by as of `current` */
  marker(by: 1 | -1): void {
    this.objects += by
    this.markers += by
  }
}

/** The columns of `buckets` and `bucket_changes`. */
const COLUMNS = ['objects', 'bytes', 'current_objects', 'current_bytes', 'markers', 'version_bytes'] as const

const each = (of: (column: (typeof COLUMNS)[number], n: number) => string) => COLUMNS.map(of).join(', ')

/**
 * How the numbers of a bucket grow. Transactions that change one row wait for one another: in SQLite they do in any
 * case; in PostgreSQL each adds a row to `bucket_changes`, which `fold` adds up. Parameters: as the columns, bucket.
 */
export const COUNT = {
  sqlite: `UPDATE buckets SET ${each((column, n) => `${column} = ${column} + ?${n + 1}`)} WHERE id = ?7`,
  postgres: `INSERT INTO bucket_changes (${COLUMNS.join(', ')}, bucket) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`,
}

const sumOfGone = (column: string) => `${column} = ${column} + (SELECT coalesce(sum(${column}), 0) FROM gone)`

export const FOLD = `
  WITH gone AS (DELETE FROM bucket_changes WHERE bucket = ?1 RETURNING ${COLUMNS.join(', ')})
  UPDATE buckets SET ${each(sumOfGone)} WHERE id = ?1
`

const sumOfChanges = (column: string) =>
  `${column} = ${column} + (SELECT coalesce(sum(c.${column}), 0) FROM bucket_changes AS c WHERE c.bucket = buckets.id)`

/** For a SQLite database that has the rows of one in PostgreSQL. */
export const foldAll: readonly string[] = [`UPDATE buckets SET ${each(sumOfChanges)}`, 'DELETE FROM bucket_changes']

const OWN =
  'SELECT coalesce(sum(objects), 0) AS objects, coalesce(sum(bytes), 0) AS bytes FROM buckets WHERE owner = ?1'

const usage = {
  sqlite: OWN,
  postgres: `
    SELECT folded.objects + more.objects AS objects, folded.bytes + more.bytes AS bytes FROM (${OWN}) AS folded, (
      SELECT coalesce(sum(c.objects), 0) AS objects, coalesce(sum(c.bytes), 0) AS bytes
      FROM buckets AS b JOIN bucket_changes AS c ON c.bucket = b.id WHERE b.owner = ?1
    ) AS more
  `,
}

/** SELECT of the numbers of objects and bytes in the buckets of an owner: the first parameter. */
export function usageIn({ engine }: Connection): string {
  return usage[engine]
}

const content = {
  sqlite: 'SELECT objects, bytes FROM buckets WHERE id = ?1',
  postgres: `
    SELECT b.objects + coalesce(sum(c.objects), 0) AS objects, b.bytes + coalesce(sum(c.bytes), 0) AS bytes
    FROM buckets AS b LEFT JOIN bucket_changes AS c ON c.bucket = b.id WHERE b.id = ?1 GROUP BY b.id
  `,
}

/** SELECT of the numbers of objects and bytes in a bucket: the first parameter. */
export function contentOf({ engine }: Connection): string {
  return content[engine]
}

const quoted = (column: string) => `"${column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())}"`

/** SELECT of the id of each bucket, and its BucketNumbers; with what has not been folded. */
export const NUMBERS = {
  sqlite: `SELECT id, ${each((column) => `${column} AS ${quoted(column)}`)} FROM buckets`,
  postgres: `
    SELECT b.id, ${each((column) => `(b.${column} + coalesce(sum(c.${column}), 0))::bigint AS ${quoted(column)}`)}
    FROM buckets AS b LEFT JOIN bucket_changes AS c ON c.bucket = b.id GROUP BY b.id
  `,
}

const HERE = 'sum(CASE WHEN body_at = 2 THEN 0 ELSE size END)'

/** SELECT of the rows of buckets, counted: the id of the bucket, and its BucketNumbers. */
const counted = (where: string) => `
  SELECT bucket AS id, sum(objects) AS "objects", sum(bytes) AS "bytes", sum(current_objects) AS "currentObjects",
    sum(current_bytes) AS "currentBytes", sum(markers) AS "markers", sum(version_bytes) AS "versionBytes"
  FROM (
    SELECT bucket, count(*) AS objects, ${HERE} AS bytes, count(*) AS current_objects, sum(size) AS current_bytes,
      0 AS markers, 0 AS version_bytes
    FROM objects ${where} GROUP BY bucket
    UNION ALL
    SELECT bucket, count(*), ${HERE}, 0, 0, sum(marker), sum(size) FROM versions ${where} GROUP BY bucket
    UNION ALL
    SELECT id AS bucket, 0, 0, 0, 0, 0, 0 FROM buckets AS b ${where.replace('bucket', 'b.id')}
  ) AS counted GROUP BY bucket
`

/** Sets the numbers of a bucket, the first parameter, to those of its rows. */
export const RECOUNT = `
  UPDATE buckets SET ${each((column) => `${column} = c.${quoted(column)}`)}
  FROM (${counted('WHERE bucket = ?1')}) AS c WHERE buckets.id = c.id
`

/** A bucket whose numbers are not those of its rows. */
export interface Miscounted {
  readonly id: number
  readonly name: string
  readonly keptObjects: number
  readonly keptBytes: number
  /** What a count has found. */
  readonly objects: number
  readonly bytes: number
}

/** SELECT of these buckets, in one statement. */
export function miscounted({ engine }: Connection): string {
  const differs = COLUMNS.map((column) => `k.${quoted(column)} <> c.${quoted(column)}`)
  return `
    SELECT b.id, b.name, k."objects" AS "keptObjects", k."bytes" AS "keptBytes", c."objects"::X AS "objects",
      c."bytes"::X AS "bytes"
    FROM buckets AS b JOIN (${NUMBERS[engine]}) AS k ON k.id = b.id JOIN (${counted('')}) AS c ON c.id = b.id
    WHERE ${differs.join(' OR ')} ORDER BY b.name
  `.replaceAll('::X', engine === 'postgres' ? '::bigint' : '')
}
