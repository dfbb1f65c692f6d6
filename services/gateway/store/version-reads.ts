import { GatewayError } from '../errors.js'
import type { BucketRow } from './buckets.js'
import type { ObjectRow, OpenedObject, RowExtras } from './object-row.js'
import type { Objects } from './objects.js'
import { shownId, type VersionRow, type Versions } from './versions.js'

/** One of the versions of a key. */
export type VersionRef = { readonly id: string } | { readonly generation: string }

interface ReadTables {
  readonly objects: Objects
  readonly versions: Versions
}

/** A version may become current, or cease to be, between two looks. */
const MAX_ATTEMPTS = 3

/**
 * The object as a reader wants it: the current one, or one of its versions. Throws GatewayError NoSuchKey for a key
 * without a current object; NoSuchVersion; and IsDeleteMarker.
 */
export async function openVersion(
  tables: ReadTables,
  bucket: BucketRow,
  key: Buffer,
  ref: VersionRef | undefined,
  wanted: RowExtras,
): Promise<OpenedObject> {
  const { objects, versions } = tables
  if (ref === undefined) {
    const opened = await objects.open(bucket.id, key, wanted)
    if (opened !== undefined) return opened
    const newest = bucket.versioning === null ? undefined : await versions.newest(bucket.id, key)
    throw new GatewayError('NoSuchKey', newest?.isMarker ? { marker: markerOf(newest) } : {})
  }
  for (let look = 0; look < MAX_ATTEMPTS; look++) {
    const current = await objects.open(bucket.id, key, wanted)
    if (current !== undefined && isIt(current.row, ref)) return current
    const row =
      'id' in ref
        ? await versions.find(bucket.id, key, ref.id)
        : await versions.ofGeneration(bucket.id, key, ref.generation)
    if (row === undefined) continue
    if (row.isMarker) throw new GatewayError('IsDeleteMarker', { marker: markerOf(row) })
    const isInline = wanted.body && row.bodyAt === 'index'
    const body = isInline ? await objects.inlineBody(row.generation) : undefined
    // It has been removed since.
    if (isInline && body === undefined) continue
    return { row, body, record: wanted.record ? await objects.record(row.generation) : undefined }
  }
  throw new GatewayError('NoSuchVersion')
}

/**
 * The object, or the version of it that has this generation.
 * @param generation absent: the current one
 */
export async function findVersion(
  { objects, versions }: ReadTables,
  bucket: number,
  key: Buffer,
  generation?: string,
): Promise<ObjectRow | VersionRow | undefined> {
  for (let look = 0; look < MAX_ATTEMPTS; look++) {
    const current = await objects.find(bucket, key)
    if (generation === undefined || current?.generation === generation) return current
    const version = await versions.ofGeneration(bucket, key, generation)
    if (version !== undefined) return version
  }
  return undefined
}

/**
 * The version that `findVersion` finds. Throws GatewayError NoSuchKey or, for a generation that the key does not have,
 * NoSuchVersion.
 */
export async function mustFindVersion(
  tables: ReadTables,
  bucket: number,
  key: Buffer,
  generation?: string,
): Promise<ObjectRow | VersionRow> {
  const row = await findVersion(tables, bucket, key, generation)
  if (row === undefined) throw new GatewayError(generation === undefined ? 'NoSuchKey' : 'NoSuchVersion')
  return row
}

function markerOf(row: VersionRow): { readonly id: string; readonly since: string } {
  return { id: shownId(row), since: row.modified }
}

function isIt(row: OpenedObject['row'], ref: VersionRef): boolean {
  return 'id' in ref ? shownId(row) === ref.id : row.generation === ref.generation
}
