import { type Clock, nanosecondsOf, rfc3339 } from '../../clock.js'
import { GatewayError } from '../errors.js'
import type { Tally } from './bucket-numbers.js'
import type { BucketRow } from './buckets.js'
import type { LastWrite } from './fences.js'
import { mustBeFree, type ObjectLocks } from './object-locks.js'
import { type FreedBody, newGeneration, type ObjectRow } from './object-row.js'
import type { CurrentObject, Objects } from './objects.js'
import { freedOf, NULL_VERSION, shownId, timeAfter, type VersionRow, type Versions, versionIdAt } from './versions.js'

interface VersionTables {
  readonly objects: Objects
  readonly versions: Versions
  readonly locks: ObjectLocks
}

/** The version that a removal by its id is about. */
export interface VersionRemoval {
  readonly id: string
  /** The caller may remove a version in spite of a retention in GOVERNANCE mode. */
  readonly bypass: boolean
  /** What must hold of it, unless it is gone. */
  readonly only?: RemovalCondition
}

export type RemovalCondition =
  /** It is not current since then (of a marker: since it was made), and as many objects between are newer. */
  | { readonly noncurrentSince: string; readonly newer: number }
  /** It is a delete marker, and its key has nothing else. */
  | { readonly alone: true }

/** What a removal has done in a bucket with versions. */
export interface RemovalAnswer {
  readonly versionId?: string
  readonly deleteMarker?: true
}

/** The place of a new newest version of a key. */
export interface NewestVersion {
  /** Null: the version without an id. */
  readonly version: string | null
  /** RFC 3339. */
  readonly modified: string
  /** What had this place. */
  readonly freed: readonly FreedBody[]
  readonly hadObject: boolean
}

/** The change of a key by a removal. */
interface Removed {
  /** Rows that are gone. */
  readonly freed: readonly FreedBody[]
  readonly hadObject: boolean
  readonly answer: RemovalAnswer
}

/**
 * Makes way for a new newest version of the key. In a bucket that was never versioned, the object that the caller puts
 * in its place replaces it. Throws GatewayError ObjectLocked.
 * @param present the current object
 * @param tally gets what has gone, and what is another version by now
 */
export async function makeWay(
  tables: VersionTables,
  clock: Clock,
  { id: bucket, versioning }: BucketRow,
  key: Buffer,
  present: CurrentObject | undefined,
  tally: Tally,
): Promise<NewestVersion> {
  const { objects, versions } = tables
  if (versioning === null) {
    if (present !== undefined) {
      await objects.makeWay(bucket, key, present)
      tally.current(present, -1)
    }
    const freed = present === undefined ? [] : [freedOf(present)]
    return { version: null, modified: rfc3339(clock.now()), freed, hadObject: present !== undefined }
  }
  const time = timeAfter(clock.now(), present ?? (await versions.newest(bucket, key)))
  const modified = rfc3339(time)
  const isSuspended = versioning === 'Suspended'
  const freed: FreedBody[] = []
  if (isSuspended) {
    const former = await find(tables, bucket, key, NULL_VERSION)
    if (former !== undefined) freed.push(await drop(tables, bucket, former, false, tally))
  }
  if (present !== undefined && !(isSuspended && present.version === null)) {
    await versions.archive(bucket, key, versionIdAt(nanosecondsOf(present.modified)), modified)
    tally.current(present, -1)
    tally.version(present, 1)
  }
  return { version: isSuspended ? null : versionIdAt(time), modified, freed, hadObject: present !== undefined }
}

const NOTHING: Removed = { freed: [], hadObject: false, answer: {} }

/**
 * Removes the key as S3 does without a version: the object in a bucket that was never versioned; in others a delete
 * marker becomes the newest version. Throws as `makeWay` does.
 * @param tally gets what this changes
 */
export async function removeCurrent(
  tables: VersionTables,
  clock: Clock,
  bucket: BucketRow,
  key: Buffer,
  write: LastWrite,
  present: CurrentObject | undefined,
  tally: Tally,
): Promise<Removed> {
  if (bucket.versioning === null) {
    if (present === undefined) return NOTHING
    await tables.objects.remove(bucket.id, key, present)
    tally.current(present, -1)
    return { freed: [freedOf(present)], hadObject: true, answer: {} }
  }
  const { version, modified, freed, hadObject } = await makeWay(tables, clock, bucket, key, present, tally)
  const id = version ?? versionIdAt(nanosecondsOf(modified))
  const marker = { ...write, id, isNull: version === null, modified, generation: newGeneration(clock) }
  await tables.versions.addMarker(bucket.id, key, marker)
  tally.marker(1)
  return { freed, hadObject, answer: { versionId: shownId({ version }), deleteMarker: true } }
}

/**
 * Removes one version, or nothing if there is none of this id. The newest of those that remain becomes the current one.
 * Throws GatewayError ObjectLocked, or OtherGeneration if the condition does not hold.
 * @param tally gets what this changes
 */
export async function removeVersion(
  tables: VersionTables,
  { id: bucket }: BucketRow,
  key: Buffer,
  { id, bypass, only }: VersionRemoval,
  tally: Tally,
): Promise<Removed> {
  const { objects, versions } = tables
  const found = await find(tables, bucket, key, id)
  if (found === undefined) return { ...NOTHING, answer: { versionId: id } }
  if (only && !(await holds(tables, bucket, found, only))) throw new GatewayError('OtherGeneration')
  const freed = [await drop(tables, bucket, found, bypass, tally)]
  if ((await objects.lastWrite(bucket, key)) === undefined) {
    const next = await versions.newest(bucket, key)
    if (next !== undefined && !next.isMarker) {
      await versions.promote(bucket, next)
      tally.version(next, -1)
      tally.current(next, 1)
    }
  }
  const answer = { versionId: id, ...(isMarker(found) && { deleteMarker: true as const }) }
  return { freed, hadObject: !('id' in found), answer }
}

async function holds(
  { versions }: VersionTables,
  bucket: number,
  row: ObjectRow | VersionRow,
  only: RemovalCondition,
): Promise<boolean> {
  if (!('id' in row)) return false
  const isNewest = (await versions.newestId(bucket, row.key)) === row.id
  if ('alone' in only) return row.isMarker && isNewest && !(await versions.hasOlder(bucket, row))
  if (isNewest || row.since !== only.noncurrentSince) return false
  return only.newer === 0 || (await versions.countNewer(bucket, row, only.newer)) === only.newer
}

/**
 * Removes the row of a version, wherever it is: every way to lose one leads through here, except where no bucket was
 * ever versioned. Throws GatewayError ObjectLocked.
 */
async function drop(
  tables: VersionTables,
  bucket: number,
  row: ObjectRow | VersionRow,
  bypass: boolean,
  tally: Tally,
): Promise<FreedBody> {
  const { objects, versions, locks } = tables
  await mustBeFree(tables, row.generation, bypass)
  await locks.remove(row.generation)
  if ('id' in row) {
    await versions.remove(bucket, row)
    await objects.keepRecord(row.generation, '')
    if (row.isMarker) tally.marker(-1)
    else tally.version(row, -1)
  } else {
    await objects.remove(bucket, row.key, { generation: row.generation, hasRecord: true })
    tally.current(row, -1)
  }
  return freedOf(row)
}

export function isMarker(row: ObjectRow | VersionRow): boolean {
  return 'isMarker' in row && row.isMarker
}

/** The version of this id, current or not: a row of `versions` has a member `id`. */
async function find(
  { objects, versions }: Pick<VersionTables, 'objects' | 'versions'>,
  bucket: number,
  key: Buffer,
  id: string,
): Promise<ObjectRow | VersionRow | undefined> {
  const current = await objects.find(bucket, key)
  if (current !== undefined && shownId(current) === id) return current
  return versions.find(bucket, key, id)
}

/**
 * The version, current or not, that a write with this id has made. A write that arrives again is known by it, whatever
 * came after. Throws nothing.
 */
export async function madeBy(
  { objects, versions }: Pick<VersionTables, 'objects' | 'versions'>,
  bucket: number,
  key: Buffer,
  writeId: string,
): Promise<ObjectRow | VersionRow | undefined> {
  const current = await objects.find(bucket, key)
  return current?.writeId === writeId ? current : versions.byWriteId(bucket, key, writeId)
}

/** The version that a new one would replace. */
export async function replaced(
  tables: Pick<VersionTables, 'objects' | 'versions'>,
  { id, versioning }: BucketRow,
  key: Buffer,
): Promise<ObjectRow | undefined> {
  if (versioning === null) return tables.objects.find(id, key)
  return versioning === 'Enabled' ? undefined : find(tables, id, key, NULL_VERSION)
}

/** Throws GatewayError WriteIdReused unless the version is an object of these bytes. */
export function mustBeSame(row: ObjectRow | undefined, { size, etag }: Pick<ObjectRow, 'size' | 'etag'>): ObjectRow {
  if (row === undefined || isMarker(row) || row.size !== size || row.etag !== etag)
    throw new GatewayError('WriteIdReused')
  return row
}
