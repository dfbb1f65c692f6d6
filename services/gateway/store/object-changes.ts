import { type Clock, rfc3339 } from '../../clock.js'
import { type Bodies, mustBeNew, type StoredBody } from '../../store/bodies.js'
import { type Database, type TransactionOptions, together } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { Admission } from './admission.js'
import { type BucketRow, type Buckets, bucketLock, type LockedBucket } from './buckets.js'
import { type Fences, MAX_FENCE, type RemovedKeys, type WriteOrder } from './fences.js'
import type { Holds } from './holds.js'
import type { KeyRules } from './key-rules.js'
import type { LateTables } from './late-orders.js'
import { giveUp, keyLock } from './local-copies.js'
import { type DeclaredLock, type LockRow, lockNew, type ObjectLocks } from './object-locks.js'
import { bytesHere, type FreedBody, type ObjectRow, placed, storedBodyOf } from './objects.js'
import { type AccountQuota, type Quotas, quotaOf } from './quotas.js'
import { above, justAfter } from './scan.js'
import {
  madeBy,
  makeWay,
  mustBeSame,
  type RemovalAnswer,
  removeCurrent,
  removeVersion,
  replaced,
  type VersionRemoval,
} from './version-changes.js'
import type { Versions } from './versions.js'

/** An object whose body has arrived completely. */
export interface Draft {
  readonly key: Buffer
  readonly size: number
  readonly etag: string
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly generation: string
  /** The bytes, for the index, or where they are stored. */
  readonly body: Buffer | StoredBody
  /** What the client keeps with the object. */
  readonly record?: string | undefined
  /** Besides that of the bucket. */
  readonly lock?: DeclaredLock | undefined
  /**
   * Returns undefined for an upload without order, which counts as the last write whenever it arrives. May throw to
   * refuse the draft.
   */
  readonly order: (tables: LateTables) => Promise<WriteOrder> | WriteOrder | undefined
  /** True when the client will not learn the outcome of the upload; the upload must then be dropped. */
  readonly abandoned: () => boolean
}

interface KeptRecord {
  /** That of the object. */
  readonly generation: string
  /** '' removes the record. */
  readonly record: string
  readonly fence: number
}

/** Bodies without an object, to be discarded once the change is committed. */
type Stored = readonly StoredBody[]

/** What an upload has made, now or when it arrived for the first time. */
export interface StoredDraft {
  readonly row: ObjectRow
  /** Versioning of the bucket is enabled, or has been. */
  readonly isVersioned: boolean
  readonly lock: LockRow | undefined
}

interface BatchResult {
  /** Number of keys that had an object. */
  readonly removed: number
  /** Of the last key. */
  readonly answer: RemovalAnswer
}

/** The keys to remove. */
type Keys = (tables: ChangeTables) => Promise<readonly Buffer[]>

const REMOVE_BATCH = 500

/** Most keys that a change locks one by one. One of more keys must be alone in the bucket. */
const MAX_LOCKS = 8

/** Number of changes between two times that the numbers of a bucket are folded. */
const FOLD_EVERY = 1000

type ChangeTables = Parameters<Holds['letGo']>[0] &
  LateTables & {
    readonly buckets: Buckets
    readonly removed: RemovedKeys
    readonly quotas: Quotas
    readonly versions: Versions
    readonly locks: ObjectLocks
  }

/**
 * Changes objects. Each change is one transaction and durable once the promise resolves; bodies without a row are
 * discarded after it.
 */
export class ObjectChanges {
  readonly #db: Database<ChangeTables>
  readonly #bodies: Bodies
  readonly #clock: Clock
  readonly #rules: KeyRules
  readonly #holds: Holds
  readonly #admission: Admission
  /** Number of changes by bucket, at this process: each folds those of all. */
  readonly #changes = new Map<number, number>()

  constructor(
    db: Database<ChangeTables>,
    bodies: Bodies,
    clock: Clock,
    rules: KeyRules,
    holds: Holds,
    /** Absent: writes take effect in the order of their arrival. */
    fences: Fences | undefined,
  ) {
    this.#db = db
    this.#bodies = bodies
    this.#clock = clock
    this.#rules = rules
    this.#holds = holds
    this.#admission = new Admission(fences)
  }

  /**
   * Throws GatewayError Overtaken, OtherGeneration or WriteIdReused when an upload with this order would be refused
   * now.
   */
  async mayStillUpload(bucket: BucketRow, key: Buffer, order: WriteOrder): Promise<void> {
    const present = await this.#admission.present(this.#db.read, bucket, key)
    await this.#admission.admit(this.#db.read, bucket, key, order, 'upload', present)
  }

  /**
   * Throws GatewayError QuotaExceeded when the bucket or its owner has no room for such an object now, unless the write
   * with this id has made it before.
   */
  async mustHaveRoom(bucket: BucketRow, key: Buffer, size: number, writeId: string | undefined): Promise<void> {
    const { read } = this.#db
    try {
      await this.#mustHaveRoom(read, bucket, key, size, await read.quotas.of(bucket.owner))
    } catch (error) {
      if (writeId === undefined || !(await madeBy(read, bucket.id, key, writeId))) throw error
    }
  }

  async #mustHaveRoom(
    tables: ChangeTables,
    bucket: BucketRow,
    key: Buffer,
    size: number,
    ofOwner: AccountQuota | undefined,
  ): Promise<void> {
    const { quotas, holds } = tables
    if (ofOwner === undefined && quotaOf(bucket) === undefined) return
    const present = await replaced(tables, bucket, key)
    // A pending deal keeps the present body, which counts on.
    const isFreed = present && !(await holds.covers(bucket.id, present.generation))
    const bytes = size - (isFreed ? bytesHere(present) : 0)
    const more = { bytes, objects: present ? 0 : 1 }
    if (ofOwner !== undefined) await quotas.mustHaveRoom(bucket.owner, ofOwner, more)
    await quotas.mustHaveRoomIn(bucket, more)
  }

  /**
   * Stores the object, replacing one of the same key; repeating a draft changes nothing. On failure the body of the
   * draft is discarded, unless the outcome is not known. Throws GatewayError Overtaken, OtherGeneration, WriteIdReused
   * or QuotaExceeded.
   */
  async put(bucket: BucketRow, draft: Draft): Promise<StoredDraft> {
    const stored = Buffer.isBuffer(draft.body) ? undefined : draft.body
    try {
      const options = { takesRoom: true, ...changing(bucket, [draft.key], this.#rules.concernOthers) }
      const { freed, ...result } = await this.#db.transaction((tables) => this.#put(tables, bucket, draft), options)
      const { row } = result
      if (stored !== undefined) {
        if (row.generation === draft.generation) this.#bodies.committed(stored)
        else this.#bodies.discard(stored)
      }
      this.#discard(freed)
      this.#fold(bucket.id)
      return result
    } catch (error) {
      if (stored !== undefined) giveUp(this.#bodies, stored, error)
      throw error
    }
  }

  /**
   * Keeps a record with the object, or none (''). Counts as a write to the key: none with a lower fence takes effect
   * later. For a version that is not current, it counts among the changes of that alone. Throws GatewayError
   * OtherGeneration or Overtaken.
   */
  async keepRecord(bucket: BucketRow, key: Buffer, { generation, record, fence }: KeptRecord): Promise<void> {
    const run = async (tables: ChangeTables) => {
      const { objects, versions } = tables
      const { versioning } = await mustStillBe(tables, bucket, false)
      const last = await objects.lastWrite(bucket.id, key)
      const isCurrent = last?.generation === generation
      const version =
        isCurrent || versioning === null ? undefined : await versions.ofGeneration(bucket.id, key, generation)
      const changed = isCurrent ? last : version
      if (changed === undefined) throw new GatewayError('OtherGeneration')
      // As for writes: the highest fence must not keep all others out.
      if (fence < changed.fence && changed.fence < MAX_FENCE)
        throw new GatewayError('Overtaken', { fence: changed.fence })
      await objects.keepRecord(generation, record)
      if (version === undefined) await objects.raise(bucket.id, key, fence)
      else await versions.raise(bucket.id, version, fence)
    }
    await this.#db.transaction(run, { takesRoom: true, locks: [keyLock(bucket, key)] })
  }

  /**
   * Removes one object in its order among the writes to its key, or one version of it; a missing one is no error.
   * Throws GatewayError Overtaken, OtherGeneration, WriteIdReused or ObjectLocked.
   * @param order absent for a client without fences
   */
  async removeOne(
    bucket: BucketRow,
    key: Buffer,
    order: WriteOrder | undefined,
    version?: VersionRemoval,
  ): Promise<RemovalAnswer> {
    return (await this.#removeKeys(bucket, [key], order, version)).answer
  }

  /** Removes exactly these keys; missing keys are no error. Resolves with the number of removed objects. */
  async remove(bucket: BucketRow, keys: readonly Buffer[]): Promise<number> {
    let removed = 0
    for (let at = 0; at < keys.length; at += REMOVE_BATCH) {
      removed += (await this.#removeKeys(bucket, keys.slice(at, at + REMOVE_BATCH))).removed
    }
    return removed
  }

  /** Removes all objects whose key starts with `prefix` and for which `goes` returns true. */
  async removeBeneath(bucket: BucketRow, prefix: Buffer, goes: (key: Buffer) => boolean): Promise<void> {
    let from = prefix
    for (;;) {
      let last: Buffer | undefined
      await this.#removeBatch(bucket, undefined, async ({ objects }) => {
        const page = await objects.page(bucket.id, from, above(prefix), REMOVE_BATCH)
        const keys = page.map(({ key }) => key)
        last = keys.at(-1)
        return keys.filter(goes)
      })
      if (last === undefined) return
      from = justAfter(last)
    }
  }

  async #put(tables: ChangeTables, bucket: BucketRow, draft: Draft): Promise<StoredDraft & { freed: Stored }> {
    const { buckets, objects, quotas, removed } = tables
    const [held, present, quota] = await together([
      mustStillBe(tables, bucket, this.#rules.concernOthers),
      this.#admission.present(tables, bucket, draft.key),
      quotas.lock(bucket.owner),
    ])
    await quotas.lockIn(held)
    const isVersioned = held.versioning !== null
    if (draft.abandoned()) throw new GatewayError('IncompleteBody')
    const order = await draft.order(tables)
    const admitted = await this.#admission.admit(tables, held, draft.key, order, 'upload', present)
    const { write, isAbsent } = admitted
    if (write === 'repeated') {
      const row = mustBeSame(admitted.row, draft)
      const lock = isVersioned ? await tables.locks.find(row.generation) : undefined
      return { row, isVersioned, lock, freed: [] }
    }
    await this.#rules.mayPut(tables, bucket, draft.key, draft.size)
    await this.#mustHaveRoom(tables, held, draft.key, draft.size, quota)
    const place = await makeWay(tables, this.#clock, held, draft.key, isAbsent)
    const { body, record, lock: asked, order: _, abandoned: __, ...rest } = draft
    const inline = Buffer.isBuffer(body)
    mustBeNew(body)
    const row: ObjectRow = {
      ...rest,
      ...write,
      modified: place.modified,
      ...placed(draft.generation, body),
      version: place.version,
    }
    if (!place.hadObject) await this.#rules.entryChanged(tables, bucket.id, draft.key, row.modified)
    const [freed, lock] = await together([
      this.#letGo(tables, held, place.freed),
      lockNew(tables, held, row.generation, asked),
      isAbsent || isVersioned ? removed.forget(bucket.id, draft.key) : undefined,
      objects.put(bucket.id, row, inline ? body : undefined, record),
      inline ? undefined : tables.bodySums.add(row.generation, body.sums),
      buckets.count(bucket.id, 1 - place.freed.length, draft.size - bytesOf(place.freed)),
    ])
    return { row, isVersioned, lock, freed }
  }

  #removeKeys(
    bucket: BucketRow,
    keys: readonly Buffer[],
    order?: WriteOrder,
    version?: VersionRemoval,
  ): Promise<BatchResult> {
    const locked = keys.length <= MAX_LOCKS && !this.#rules.concernOthers ? keys : undefined
    return this.#removeBatch(bucket, locked, async () => keys, order, version)
  }

  /** @param locked the keys; undefined when the change must be alone in the bucket */
  async #removeBatch(
    bucket: BucketRow,
    locked: readonly Buffer[] | undefined,
    keysIn: Keys,
    order?: WriteOrder,
    version?: VersionRemoval,
  ): Promise<BatchResult> {
    const work = async (tables: ChangeTables) => {
      const held = await mustStillBe(tables, bucket, locked === undefined)
      const gone: FreedBody[] = []
      let [removed, markers] = [0, 0]
      let answer: RemovalAnswer = {}
      for (const key of await keysIn(tables)) {
        const present = await this.#admission.present(tables, bucket, key)
        const admitted = await this.#admission.admit(tables, held, key, order, 'removal', present)
        const { write } = admitted
        if (write === 'repeated') {
          answer = admitted.answer ?? {}
          continue
        }
        const change =
          version === undefined
            ? await removeCurrent(tables, this.#clock, held, key, write)
            : await removeVersion(tables, held, key, version)
        answer = change.answer
        const changes = change.freed.length + change.addedMarkers
        // A removal of a missing object also refuses uploads that were sent before it.
        if (changes > 0 || order !== undefined) await this.#admission.remember(tables, held, key, write, answer)
        gone.push(...change.freed)
        markers += change.addedMarkers
        if (!change.hadObject) continue
        removed++
        for await (const folder of this.#rules.emptiedFolders(tables, bucket.id, key)) {
          if ((await tables.objects.lastWrite(bucket.id, folder)) === undefined) continue
          const pruned = await removeCurrent(tables, this.#clock, held, folder, { fence: 0, writeId: null })
          gone.push(...pruned.freed)
          markers += pruned.addedMarkers
        }
        await this.#rules.entryChanged(tables, bucket.id, key, rfc3339(this.#clock.now()))
      }
      const more = markers - gone.length
      if (gone.length + markers > 0) await tables.buckets.count(bucket.id, more, -bytesOf(gone))
      return { removed, answer, stored: await this.#letGo(tables, held, gone) }
    }
    const options = changing(bucket, locked ?? [], locked === undefined)
    const { stored, ...result } = await this.#db.transaction(work, options)
    this.#discard(stored)
    this.#fold(bucket.id)
    return result
  }

  async #letGo(tables: ChangeTables, { id, held }: LockedBucket, freed: readonly FreedBody[]): Promise<Stored> {
    const stored: StoredBody[] = []
    for (const one of freed) if (await this.#holds.letGo(tables, id, one, held === 1)) stored.push(storedBodyOf(one))
    return stored
  }

  /** In the background: what fails now is folded later. */
  #fold(bucket: number): void {
    const changes = (this.#changes.get(bucket) ?? 0) + 1
    this.#changes.set(bucket, changes % FOLD_EVERY)
    if (changes === FOLD_EVERY) this.#db.transaction(({ buckets }) => buckets.fold(bucket)).catch(() => {})
  }

  #discard(stored: Stored): void {
    for (const body of stored) this.#bodies.discard(body)
  }
}

/** Of a change of objects. */
function changing(bucket: BucketRow, keys: readonly Buffer[], alone: boolean): TransactionOptions {
  const ofKeys = keys.map((key) => keyLock(bucket, key))
  const ofBucket = [bucketLock(bucket)]
  return alone ? { locks: [...ofKeys, ...ofBucket] } : { locks: ofKeys, shares: ofBucket }
}

/**
 * The bucket may have been deleted, and created again, while a body was arriving. Resolves with the bucket as the
 * transaction finds it.
 */
async function mustStillBe({ buckets }: ChangeTables, { id, name }: BucketRow, alone: boolean): Promise<LockedBucket> {
  const bucket = await buckets.lock(name, alone)
  if (bucket?.id !== id) throw new GatewayError('NoSuchBucket', { bucket: name })
  return bucket
}

function bytesOf(freed: readonly FreedBody[]): number {
  return freed.reduce((sum, one) => sum + bytesHere(one), 0)
}
