import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.js'
import type { StoredBody } from '../../store/bodies.js'

/** Where a body is stored, by the number in the column: in a body of its own, in the index, or in deals only. */
export const places = ['file', 'index', 'network'] as const

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
  /** Algorithm and value, as the writer has stated them. */
  readonly checksum: string | null
}

export interface ObjectRow extends ListedObject {
  /** Headers to return on download, by lower-case name. Each character of a value is one byte. */
  readonly headers: Readonly<Record<string, string>>
  /** Fence of the write that stored the object. */
  readonly fence: number
  readonly writeId: string | null
  /** Name of the body, if it is one of its own. */
  readonly bodyName: string
  readonly bodyMark: string | null
  /** Id of the version; null for the one that was written without versioning. */
  readonly version: string | null
}

/** A body without a row, and where it is stored. */
export type FreedBody = Pick<ObjectRow, 'generation' | 'bodyAt' | 'size' | 'bodyName' | 'bodyMark'>

type Stored = Pick<ObjectRow, 'bodyName' | 'size' | 'bodyMark'>

export function storedBodyOf({ bodyName: name, size, bodyMark: mark }: Stored): StoredBody {
  return { name, size, mark }
}

/** False for ETags that are no digest of the body, such as those of multipart uploads. */
export function isMd5(etag: string): boolean {
  return /^[0-9a-f]{32}$/.test(etag)
}

/** Returns a unique name: 16 digits of time and 16 random digits. */
export function newGeneration(clock: Clock): string {
  // Node keeps random bytes in store for these, and asks the system for each call of `randomBytes`. All digits of the
  // first and of the last group are random: RFC 9562, section 5.4.
  const id = randomUUID()
  return clock.now().toString(16).padStart(16, '0') + id.slice(0, 8) + id.slice(28)
}

export function bytesHere({ bodyAt, size }: Pick<FreedBody, 'bodyAt' | 'size'>): number {
  return bodyAt === 'network' ? 0 : size
}

export const BODY_NAME = 'coalesce(body_name, generation)'
export const BODY = `${BODY_NAME} AS "bodyName", body_mark AS "bodyMark"`
export const ROW = `size, modified, generation, etag, content_type AS "contentType", headers, body_at AS "bodyAt", fence, write_id AS "writeId", checksum, ${BODY}`

/** What a reader of an object wants besides its row. */
export interface RowExtras {
  /** The body, if it is in the index. */
  readonly body: boolean
  readonly record: boolean
}

/** Where the body of a new object is. */
export function placed(
  generation: string,
  body: Buffer | StoredBody,
): Pick<ObjectRow, 'bodyAt' | 'bodyName' | 'bodyMark'> {
  if (Buffer.isBuffer(body)) return { bodyAt: 'index', bodyName: generation, bodyMark: null }
  return { bodyAt: 'file', bodyName: body.name, bodyMark: body.mark }
}

/** Where a body is, in the columns of a row. */
export type BodyColumns = readonly [at: number, name: string | null, mark: string | null]

/** @param body in the index, or one of its own; undefined: in deals only */
export function bodyColumns(body: Buffer | StoredBody | undefined): BodyColumns {
  if (body === undefined) return [places.indexOf('network'), null, null]
  return Buffer.isBuffer(body) ? [places.indexOf('index'), null, null] : [places.indexOf('file'), body.name, body.mark]
}

/** What was found at one moment. */
export interface OpenedObject {
  readonly row: ObjectRow
  readonly body: Buffer | undefined
  /** What a client keeps with the object. */
  readonly record: string | undefined
}

export interface FoundRow extends Omit<ObjectRow, 'headers' | 'bodyAt' | 'key'> {
  readonly headers: string | null
  readonly bodyAt: number
}

/** Member by member: a spread of a row takes as long as to read it. */
export function foundRow(key: Buffer, row: FoundRow): ObjectRow {
  const { size, modified, generation, etag, contentType, fence, writeId, bodyName, bodyMark, version, checksum } = row
  const headers = row.headers === null ? {} : JSON.parse(row.headers)
  const bodyAt = placeOf(row.bodyAt)
  return {
    key,
    size,
    modified,
    generation,
    etag,
    contentType,
    headers,
    bodyAt,
    fence,
    writeId,
    bodyName,
    bodyMark,
    version,
    checksum,
  }
}

/** An object as web.ListObjects describes it. Member by member: spreads cost more than the rest of a page. */
export function toObjectEntry(object: ListedObject): object {
  const { key, modified: lastModified, size, contentType, etag, generation, bodyAt, checksum } = object
  const cold = bodyAt === 'network' ? true : undefined
  const known = checksum ?? undefined
  return { name: key.toString(), lastModified, size, contentType, etag, generation, checksum: known, cold }
}

export type ListedRow = [Uint8Array, number, string, string, string, string, number, string | null]

export function listedObject(row: ListedRow): ListedObject {
  const [key, size, modified, generation, etag, contentType, bodyAt, checksum] = row
  return { key: asBuffer(key), size, modified, generation, etag, contentType, bodyAt: placeOf(bodyAt), checksum }
}

export function placeOf(number: number): BodyAt {
  const place = places[number]
  if (place === undefined) throw new Error(`The index holds an unknown place of a body: ${number}.`)
  return place
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
