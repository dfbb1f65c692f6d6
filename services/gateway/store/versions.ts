import { randomBytes } from 'node:crypto'
import { nanosecondsOf } from '../../clock.js'
import { tableOf } from '../../store/database.js'
import type { LastWrite } from './fences.js'
import type { LockRow } from './object-locks.js'
import {
  asBuffer,
  type BodyColumns,
  type FoundRow,
  type FreedBody,
  foundRow,
  type ListedObject,
  type ObjectRow,
  placeOf,
  ROW,
} from './object-row.js'

/** A version that is not the current object of its key, or a delete marker. Its member `version` is null for `null`. */
export interface VersionRow extends ObjectRow {
  /** The id by which the versions of a key are ordered: see `versionIdAt`. */
  readonly id: string
  readonly isMarker: boolean
  /** RFC 3339, nanoseconds: when another version took its place; of a marker, when it was made. */
  readonly since: string
}

/** A row of a listing: a version, current or not, or a delete marker. */
export interface ListedVersion extends ListedObject, Pick<VersionRow, 'version' | 'isMarker' | 'since'> {
  /** Id as in a VersionRow; '' for the current object. */
  readonly id: string
  readonly lock?: LockRow
}

/** A place between two rows of a listing: after the row of this id; '' is before all rows of the key. */
export interface VersionPosition {
  readonly key: Buffer
  readonly id: string
}

/** The id that clients know the version without one by. */
export const NULL_VERSION = 'null'

const NEWEST = 2n ** 64n - 1n

/**
 * A new id for a version that is written at this time, in nanoseconds since 1970: 16 digits that count down, and 16
 * random ones. In the order of their texts, later versions come first.
 */
export function versionIdAt(time: bigint): string {
  return firstIdAt(time) + randomBytes(8).toString('hex')
}

/** The first 16 digits of such an id. */
export function firstIdAt(time: bigint): string {
  return (NEWEST - time).toString(16).padStart(16, '0')
}

export function isVersionId(text: string): boolean {
  return text === NULL_VERSION || /^[0-9a-f]{32}$/.test(text)
}

const VERSION = 'CASE WHEN is_null = 1 THEN NULL ELSE id END'
const VERSION_ROW = `${ROW}, id, ${VERSION} AS version, marker, since`
const LISTED = 'size, modified, generation, etag, content_type, body_at, checksum'
const COPIED =
  'size, modified, generation, etag, content_type, headers, body_at, fence, write_id, body_name, body_mark, checksum'

/**
 * The versions of a range of keys, in the order of a listing. The current object of the first key comes with it,
 * whatever the id. Parameters: bucket, first key, id in it, upper bound of the keys, maximum number of rows.
 */
const PAGE = `
  SELECT * FROM (
    SELECT key, '' AS id, version, 0 AS marker, modified AS since, ${LISTED}
    FROM objects WHERE bucket = ?1 AND key >= ?2 AND key < ?4 ORDER BY key LIMIT ?5
  ) AS o
  UNION ALL
  SELECT * FROM (
    SELECT key, id, ${VERSION} AS version, marker, since, ${LISTED}
    FROM versions WHERE bucket = ?1 AND (key, id) > (?2, ?3) AND key < ?4 ORDER BY key, id LIMIT ?5
  ) AS v
  ORDER BY key, id LIMIT ?5
`

/** A page of versions with the lock of each. */
const PAGE_WITH_LOCKS = `
  SELECT p.*, l.mode, l.ends, l.hold FROM (${PAGE}) AS p LEFT JOIN object_locks AS l ON l.generation = p.generation
  ORDER BY p.key, p.id
`

interface FoundVersion extends FoundRow {
  readonly id: string
  readonly marker: number
  readonly since: string
}

type MarkerWrite = LastWrite & Pick<VersionRow, 'generation' | 'modified' | 'id'> & { readonly isNull: boolean }

/** The table of versions that are not current. Call writing methods inside a transaction with the lock of the key. */
export class Versions extends tableOf({
  archive: `
    INSERT INTO versions (bucket, key, id, is_null, since, ${COPIED})
    SELECT bucket, key, coalesce(version, ?3), CASE WHEN version IS NULL THEN 1 ELSE 0 END, ?4, ${COPIED}
    FROM objects WHERE bucket = ?1 AND key = ?2
  `,
  leave: 'DELETE FROM objects WHERE bucket = ? AND key = ?',
  promote: `
    INSERT INTO objects (bucket, key, version, ${COPIED}) SELECT bucket, key, ${VERSION}, ${COPIED}
    FROM versions WHERE bucket = ?1 AND key = ?2 AND id = ?3
  `,
  addMarker: `
    INSERT INTO versions (bucket, key, id, is_null, since, modified, generation, fence, write_id,
      marker, size, etag, content_type, body_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, 1, 0, '', '', 1)
  `,
  page: PAGE,
  lockedPage: PAGE_WITH_LOCKS,
  newestId: `
    SELECT coalesce(
      (SELECT '' FROM objects WHERE bucket = ?1 AND key = ?2),
      (SELECT id FROM versions WHERE bucket = ?1 AND key = ?2 ORDER BY id LIMIT 1)
    ) AS id
  `,
  newest: `SELECT ${VERSION_ROW} FROM versions WHERE bucket = ? AND key = ? ORDER BY id LIMIT 1`,
  byId: `SELECT ${VERSION_ROW} FROM versions WHERE bucket = ? AND key = ? AND id = ? AND is_null = 0`,
  nullOf: `SELECT ${VERSION_ROW} FROM versions WHERE bucket = ? AND key = ? AND is_null = 1`,
  ofGeneration: `SELECT ${VERSION_ROW} FROM versions WHERE generation = ?3 AND bucket = ?1 AND key = ?2 AND marker = 0`,
  byWrite: `SELECT ${VERSION_ROW} FROM versions WHERE bucket = ? AND key = ? AND write_id = ? LIMIT 1`,
  remove: 'DELETE FROM versions WHERE bucket = ? AND key = ? AND id = ?',
  newer: `
    SELECT count(*) AS count FROM (
      SELECT 1 FROM versions WHERE bucket = ? AND key = ? AND id < ? AND marker = 0 LIMIT ?
    ) AS v
  `,
  older: 'SELECT 1 AS one FROM versions WHERE bucket = ? AND key = ? AND id > ? LIMIT 1',
  move: 'UPDATE versions SET body_at = ?, body_name = ?, body_mark = ? WHERE bucket = ? AND key = ? AND id = ?',
  raise: 'UPDATE versions SET fence = ? WHERE bucket = ? AND key = ? AND id = ?',
}) {
  /**
   * Makes the current object of the key a version of this table.
   * @param id for the version without one
   * @param since RFC 3339
   */
  async archive(bucket: number, key: Buffer, id: string, since: string): Promise<void> {
    await this.sql.archive.run(bucket, key, id, since)
    await this.sql.leave.run(bucket, key)
  }

  /** Makes a version the current object of its key, which must have none. */
  async promote(bucket: number, { key, id }: VersionRow): Promise<void> {
    await this.sql.promote.run(bucket, key, id)
    await this.sql.remove.run(bucket, key, id)
  }

  async addMarker(bucket: number, key: Buffer, marker: MarkerWrite): Promise<void> {
    const { id, isNull, modified, generation, fence, writeId } = marker
    await this.sql.addMarker.run(bucket, key, id, isNull ? 1 : 0, modified, generation, fence, writeId)
  }

  /** Removes the row alone. */
  async remove(bucket: number, { key, id }: VersionRow): Promise<void> {
    await this.sql.remove.run(bucket, key, id)
  }

  /** Changes where the body of the version is stored: see Objects.move. */
  async move(bucket: number, { key, id }: VersionRow, [at, name, mark]: BodyColumns): Promise<void> {
    await this.sql.move.run(at, name, mark, bucket, key, id)
  }

  /** Records that a later write has changed the version. */
  async raise(bucket: number, { key, id }: VersionRow, fence: number): Promise<void> {
    await this.sql.raise.run(fence, bucket, key, id)
  }

  newest(bucket: number, key: Buffer): Promise<VersionRow | undefined> {
    return this.#one(key, this.sql.newest.get<FoundVersion>(bucket, key))
  }

  /**
   * The rows after a position whose keys are below `to`.
   * @param withLocks the bucket has object lock
   */
  async page(
    bucket: number,
    { key, id }: VersionPosition,
    to: Buffer,
    limit: number,
    withLocks = false,
  ): Promise<ListedVersion[]> {
    const { page, lockedPage } = this.sql
    return (await (withLocks ? lockedPage : page).arrays<ListedRow>(bucket, key, id, to, limit)).map(listed)
  }

  /** Id of the newest version, as in a listing: '' for the current object. */
  async newestId(bucket: number, key: Buffer): Promise<string | undefined> {
    return (await this.sql.newestId.get<{ id: string | null }>(bucket, key))?.id ?? undefined
  }

  /** The number of objects, at most `most`, that are newer than this row and not current. */
  async countNewer(bucket: number, { key, id }: VersionRow, most: number): Promise<number> {
    return Number((await this.sql.newer.get<{ count: number }>(bucket, key, id, most))?.count)
  }

  /** Whether the key has a version or marker that is older than this row. */
  async hasOlder(bucket: number, { key, id }: VersionRow): Promise<boolean> {
    return (await this.sql.older.get(bucket, key, id)) !== undefined
  }

  /** @param id as clients know it */
  find(bucket: number, key: Buffer, id: string): Promise<VersionRow | undefined> {
    const { nullOf, byId } = this.sql
    const row = id === NULL_VERSION ? nullOf.get<FoundVersion>(bucket, key) : byId.get<FoundVersion>(bucket, key, id)
    return this.#one(key, row)
  }

  /** No marker. */
  ofGeneration(bucket: number, key: Buffer, generation: string): Promise<VersionRow | undefined> {
    return this.#one(key, this.sql.ofGeneration.get<FoundVersion>(bucket, key, generation))
  }

  byWriteId(bucket: number, key: Buffer, writeId: string): Promise<VersionRow | undefined> {
    return this.#one(key, this.sql.byWrite.get<FoundVersion>(bucket, key, writeId))
  }

  async #one(key: Buffer, found: Promise<FoundVersion | undefined>): Promise<VersionRow | undefined> {
    const row = await found
    if (row === undefined) return undefined
    const { marker, ...rest } = row
    return { ...foundRow(key, rest), id: rest.id, since: rest.since, isMarker: marker === 1 }
  }
}

type PlainRow = [
  ...[Uint8Array, string, string | null, number, string],
  ...[number, string, string, string, string, number, string | null],
]
type ListedRow = PlainRow | [...PlainRow, mode: string | null, ends: number | null, hold: number | null]

function listed(row: ListedRow): ListedVersion {
  const [key, id, version, marker, since, size, modified, generation, etag, contentType, bodyAt, checksum, ...locked] =
    row
  const [mode = null, ends = null, hold = null] = locked
  const object = {
    key: asBuffer(key),
    size,
    modified,
    generation,
    etag,
    contentType,
    bodyAt: placeOf(bodyAt),
    checksum,
  }
  const lock = hold === null ? undefined : { mode, ends, hold }
  return { ...object, id, version, isMarker: marker === 1, since, ...(lock && { lock }) }
}

/** The time of a new version, which is later than that of the newest one of its key, whatever the clock says. */
export function timeAfter(now: bigint, newest: Pick<ObjectRow, 'modified'> | undefined): bigint {
  const last = newest === undefined ? 0n : nanosecondsOf(newest.modified)
  return now > last ? now : last + 1n
}

/** The id that clients know a version by. */
export function shownId({ version }: Pick<ObjectRow, 'version'>): string {
  return version ?? NULL_VERSION
}

export function freedOf({ generation, bodyAt, size, bodyName, bodyMark }: FreedBody): FreedBody {
  return { generation, bodyAt, size, bodyName, bodyMark }
}
