import type { Connection, Value } from '../../store/database.js'
import type { LockedBucket } from './buckets.js'
import type { KnownRemoval } from './fences.js'
import { placeOf } from './object-row.js'
import type { CurrentObject } from './objects.js'
import type { AccountQuota } from './quotas.js'

/** What decides about a write to a key. In a transaction with the lock of the key, it stays so until its end. */
export interface KeyState {
  readonly held: LockedBucket
  readonly present: CurrentObject | undefined
  /** Of the account that owns the bucket. */
  readonly quota: AccountQuota | undefined
  /** Absent: nothing was read of it. */
  readonly removed?: KnownRemoval
}

const STATE = `
  SELECT b.id, b.name, b.created, b.changed, b.owner, b.versioning, b.lock_rule, b.quota_bytes, b.quota_objects,
    EXISTS (SELECT 1 FROM holds WHERE bucket = b.id),
    q.account, q.bytes, q.objects, q.uploads,
    f.fence, r.fence, r.write_id, r.answer,
    o.generation, o.fence, o.write_id, o.modified, o.version, o.size, o.body_at, coalesce(o.body_name, o.generation),
    o.body_mark, EXISTS (SELECT 1 FROM object_records AS k WHERE k.generation = o.generation)
  FROM buckets AS b
    LEFT JOIN quotas AS q ON q.account = b.owner
    LEFT JOIN fence_floor AS f ON f.id = b.owner
    LEFT JOIN removed AS r ON r.bucket = b.id AND r.key = ?2
    LEFT JOIN objects AS o ON o.bucket = b.id AND o.key = ?2
  WHERE b.name = ?1
`

type OfBucket = [
  ...[id: number, name: string, created: string, changed: string, owner: number],
  ...[versioning: LockedBucket['versioning'], lockRule: string | null],
  ...[quotaBytes: number | null, quotaObjects: number | null, held: number],
]

type OfAccount = [account: number | null, bytes: number | null, objects: number | null, uploads: number | null]

type OfRemoval = [floor: number | null, fence: number | null, writeId: string | null, answer: string | null]

type OfObject = [
  ...[generation: string | null, fence: number, writeId: string | null, modified: string, version: string | null],
  ...[size: number, at: number, bodyName: string, bodyMark: string | null, hasRecord: number],
]

type Columns = [...OfBucket, ...OfAccount, ...OfRemoval, ...OfObject]

/**
 * Reads the state of a key in one statement, where transactions take place one after the other. In PostgreSQL each part
 * has a lock of its own, and all are read in one round trip: `lockKey`.
 */
export class KeyStates {
  readonly find: ((bucket: string, key: Buffer) => Promise<KeyState | undefined>) | undefined

  constructor(connection: Connection) {
    if (connection.engine !== 'sqlite') return
    const statement = connection.prepare(STATE)
    this.find = async (bucket, key) => {
      const [row] = await statement.arrays<Columns & readonly Value[]>(bucket, key)
      return row && stateOf(row)
    }
  }
}

function stateOf(row: Columns): KeyState {
  const [id, name, created, changed, owner, versioning, lockRule, quotaBytes, quotaObjects, held, ...rest] = row
  const [account, bytes, objects, uploads, floor, fence, writeId, answer, ...object] = rest
  return {
    held: { id, name, created, changed, owner, versioning, lockRule, quotaBytes, quotaObjects, held },
    present: presentIn(object),
    quota: account === null ? undefined : { bytes, objects, uploads },
    removed: { found: fence === null ? undefined : { fence, writeId, answer }, floor: floor ?? 0 },
  }
}

function presentIn(object: OfObject): CurrentObject | undefined {
  const [generation, fence, writeId, modified, version, size, at, bodyName, bodyMark, hasRecord] = object
  if (generation === null) return undefined
  const write = { generation, fence, writeId, modified, version }
  return { ...write, size, bodyAt: placeOf(at), bodyName, bodyMark, hasRecord: hasRecord === 1 }
}
