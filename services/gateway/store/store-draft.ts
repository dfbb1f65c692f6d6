import { mustBeNew, type StoredBody } from '../../store/bodies.js'
import { together } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { Tally } from './bucket-numbers.js'
import type { BucketRow, LockedBucket } from './buckets.js'
import { type ChangeParts, type ChangeTables, letGo, lockKey, type Stored } from './change-parts.js'
import type { LastWrite, WriteOrder } from './fences.js'
import type { LateTables } from './late-orders.js'
import { type DeclaredLock, type LockRow, lockNew } from './object-locks.js'
import { bytesHere, type FreedBody, type ObjectRow, placed } from './object-row.js'
import { type AccountQuota, quotaOf } from './quotas.js'
import { makeWay, mustBeSame, type NewestVersion, replaced } from './version-changes.js'

/** An object whose body has arrived completely. */
export interface Draft {
  readonly key: Buffer
  readonly size: number
  readonly etag: string
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly checksum: string | null
  readonly generation: string
  /** The bytes, for the index, or where they are stored. */
  readonly body: Buffer | StoredBody
  /** What the client keeps with the object. */
  readonly record?: string | undefined
  /** The lock that the upload declares, besides that of the bucket. */
  readonly lock?: DeclaredLock | undefined
  /**
   * Returns undefined for an upload without order, which counts as the last write whenever it arrives. May throw to
   * refuse the draft.
   */
  readonly order: (tables: LateTables) => Promise<WriteOrder> | WriteOrder | undefined
  /** True when the client will not learn the outcome of the upload; the upload must then be dropped. */
  readonly abandoned: () => boolean
}

/** What an upload has made, now or when it arrived for the first time. */
export interface StoredDraft {
  readonly row: ObjectRow
  /** Versioning of the bucket is enabled, or has been. */
  readonly isVersioned: boolean
  readonly lock: LockRow | undefined
}

interface StoredNow extends StoredDraft {
  readonly freed: Stored
}

/** The place of a draft among the versions of its key, and the order in which it is recorded. */
interface Place {
  readonly write: LastWrite
  readonly newest: NewestVersion
  /** What has made way for it. */
  readonly tally: Tally
  /** A removal of the key may be recorded. */
  readonly mayBeRemoved: boolean
}

/**
 * The transaction of an upload: lock, decide, make way, record. Its caller commits it and discards what it frees.
 * Throws GatewayError NoSuchBucket, IncompleteBody, Overtaken, OtherGeneration, WriteIdReused or QuotaExceeded.
 */
export async function storeDraft(
  parts: ChangeParts,
  tables: ChangeTables,
  bucket: BucketRow,
  draft: Draft,
): Promise<StoredNow> {
  const { key, size } = draft
  const { held, present, quota, removed } = await lockKey(parts, tables, bucket, key)
  if (draft.abandoned()) throw new GatewayError('IncompleteBody')
  const order = await draft.order(tables)
  const { write, row } = await parts.admission.admit(tables, held, key, order, 'upload', present, removed)
  if (write === 'repeated') return storedBefore(tables, held, mustBeSame(row, draft))
  await parts.rules.mayPut(tables, bucket, key, size)
  await mustHaveRoomFor(tables, held, key, size, quota)
  const tally = new Tally()
  const newest = await makeWay(tables, parts.clock, held, key, present, tally)
  const mayBeRemoved = removed ? removed.found !== undefined : present === undefined || held.versioning !== null
  return record(parts, tables, held, draft, { write, newest, tally, mayBeRemoved })
}

/** Repeats the answer to an upload that had arrived before: nothing is changed. */
async function storedBefore({ locks }: ChangeTables, { versioning }: LockedBucket, row: ObjectRow): Promise<StoredNow> {
  const isVersioned = versioning !== null
  return { row, isVersioned, lock: isVersioned ? await locks.find(row.generation) : undefined, freed: [] }
}

/**
 * Writes the rows of the new object and the numbers of its bucket. An object, its record, its lock and the checksums of
 * its body appear together, or none of them.
 */
async function record(
  { rules, holds }: ChangeParts,
  tables: ChangeTables,
  held: LockedBucket,
  draft: Draft,
  { write, newest, tally, mayBeRemoved }: Place,
): Promise<StoredNow> {
  const { body, key } = draft
  mustBeNew(body)
  const row = rowOf(draft, write, newest)
  const isVersioned = held.versioning !== null
  if (!newest.hadObject) await rules.entryChanged(tables, held.id, key, row.modified)
  const inline = Buffer.isBuffer(body)
  const over = inline ? inPlace(held, newest.freed) : undefined
  tally.current(row, 1)
  const [freed, made] = await together([
    over === undefined ? letGo({ holds }, tables, held, newest.freed) : NOTHING,
    lockNew(tables, held, row.generation, draft.lock),
    mayBeRemoved ? tables.removed.forget(held.id, key) : undefined,
    tables.objects.put(held.id, row, inline ? body : undefined, draft.record, over),
    inline ? undefined : tables.bodySums.add(row.generation, body.sums),
    tally.isEmpty ? undefined : tables.buckets.count(held.id, tally),
  ])
  return { row, isVersioned, lock: made, freed }
}

const NOTHING: Stored = []

/** The generation of the body in the index that the new one replaces. */
function inPlace({ held }: LockedBucket, freed: readonly FreedBody[]): string | undefined {
  const [only, ...others] = freed
  return held === 0 && others.length === 0 && only?.bodyAt === 'index' ? only.generation : undefined
}

function rowOf(draft: Draft, { fence, writeId }: LastWrite, { modified, version }: NewestVersion): ObjectRow {
  const { key, size, etag, contentType, headers, checksum, generation, body } = draft
  const facts = { key, size, etag, contentType, headers, checksum, generation }
  return { ...facts, fence, writeId, modified, version, ...placed(generation, body) }
}

/**
 * Throws GatewayError QuotaExceeded unless the bucket and its owner have room for an object of this size at the key.
 * @param quota of the owner
 */
export async function mustHaveRoomFor(
  tables: ChangeTables,
  bucket: BucketRow,
  key: Buffer,
  size: number,
  quota: AccountQuota | undefined,
): Promise<void> {
  const { quotas, holds } = tables
  if (quota === undefined && quotaOf(bucket) === undefined) return
  const present = await replaced(tables, bucket, key)
  // A pending deal keeps the present body, which counts on.
  const isFreed = present && !(await holds.covers(bucket.id, present.generation))
  const bytes = size - (isFreed ? bytesHere(present) : 0)
  const more = { bytes, objects: present ? 0 : 1 }
  if (quota !== undefined) await quotas.mustHaveRoom(bucket.owner, quota, more)
  await quotas.mustHaveRoomIn(bucket, more)
}
