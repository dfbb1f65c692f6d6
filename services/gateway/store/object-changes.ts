import type { Clock } from '../../clock.js'
import type { Bodies, StoredBody } from '../../store/bodies.js'
import type { Database } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { Admission } from './admission.js'
import type { BucketRow } from './buckets.js'
import { type ChangeParts, type ChangeTables, locksOf, mustStillBe, type Stored } from './change-parts.js'
import { type Fences, MAX_FENCE, type WriteOrder } from './fences.js'
import type { Holds } from './holds.js'
import type { KeyRules } from './key-rules.js'
import { giveUp, keyLock } from './local-copies.js'
import type { ObjectRow } from './object-row.js'
import { type Removal, type RemovedKeysResult, removeKeys } from './remove-keys.js'
import { above, justAfter } from './scan.js'
import { type Draft, mustHaveRoomFor, type StoredDraft, storeDraft } from './store-draft.js'
import { madeBy, type RemovalAnswer, type VersionRemoval } from './version-changes.js'

interface KeptRecord {
  /** Generation of the object. */
  readonly generation: string
  /** '' removes the record. */
  readonly record: string
  readonly fence: number
}

const REMOVE_BATCH = 500

/** Most keys that a change locks one by one. One of more keys must be alone in the bucket. */
const MAX_LOCKS = 8

/** Number of changes between two times that the numbers of a bucket are folded. */
const FOLD_EVERY = 1000

/**
 * Changes objects. Each change is one transaction and durable once the promise resolves; bodies without a row are
 * discarded after it.
 */
export class ObjectChanges {
  readonly #db: Database<ChangeTables>
  readonly #bodies: Bodies
  readonly #parts: ChangeParts
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
    this.#parts = { clock, rules, holds, admission: new Admission(fences) }
  }

  /**
   * Throws GatewayError Overtaken, OtherGeneration or WriteIdReused when an upload with this order would be refused
   * now.
   */
  async mayStillUpload(bucket: BucketRow, key: Buffer, order: WriteOrder): Promise<void> {
    const { read } = this.#db
    const present = await read.objects.lastWrite(bucket.id, key)
    await this.#parts.admission.admit(read, bucket, key, order, 'upload', present)
  }

  /**
   * Throws GatewayError QuotaExceeded when the bucket or its owner has no room for such an object now, unless the write
   * with this id has made it before.
   */
  async mustHaveRoom(bucket: BucketRow, key: Buffer, size: number, writeId: string | undefined): Promise<void> {
    const { read } = this.#db
    try {
      await mustHaveRoomFor(read, bucket, key, size, await read.quotas.of(bucket.owner))
    } catch (error) {
      if (writeId === undefined || !(await madeBy(read, bucket.id, key, writeId))) throw error
    }
  }

  /**
   * Stores the object, replacing one of the same key; repeating a draft changes nothing. On failure the body of the
   * draft is discarded, unless the outcome is not known. Throws GatewayError Overtaken, OtherGeneration, WriteIdReused
   * or QuotaExceeded.
   */
  async put(bucket: BucketRow, draft: Draft): Promise<StoredDraft> {
    const body = Buffer.isBuffer(draft.body) ? undefined : draft.body
    const locks = locksOf(bucket, [draft.key], this.#parts.rules.concernOthers)
    try {
      const work = (tables: ChangeTables) => storeDraft(this.#parts, tables, bucket, draft)
      const { freed, ...stored } = await this.#db.transaction(work, { takesRoom: true, ...locks })
      if (body !== undefined) this.#settle(body, draft, stored.row)
      this.#committed(bucket, freed)
      return stored
    } catch (error) {
      if (body !== undefined) giveUp(this.#bodies, body, error)
      throw error
    }
  }

  /** Keeps the body of a draft that has a row now. An upload that was repeated has the body of its first arrival. */
  #settle(body: StoredBody, { generation }: Draft, row: ObjectRow): void {
    if (row.generation === generation) this.#bodies.committed(body)
    else this.#bodies.discard(body)
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
      // The highest fence must not keep all others out, as among writes.
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
    return (await this.#removeThese(bucket, [key], { order, version })).answer
  }

  /** Removes exactly these keys; missing keys are no error. Resolves with the number of removed objects. */
  async remove(bucket: BucketRow, keys: readonly Buffer[]): Promise<number> {
    let removed = 0
    for (let at = 0; at < keys.length; at += REMOVE_BATCH) {
      removed += (await this.#removeThese(bucket, keys.slice(at, at + REMOVE_BATCH))).removed
    }
    return removed
  }

  /** Removes all objects whose key starts with `prefix` and for which `goes` returns true. */
  async removeBeneath(bucket: BucketRow, prefix: Buffer, goes: (key: Buffer) => boolean): Promise<void> {
    let from = prefix
    for (;;) {
      let last: Buffer | undefined
      const keys = async ({ objects }: ChangeTables) => {
        const page = await objects.page(bucket.id, from, above(prefix), REMOVE_BATCH)
        const found = page.map(({ key }) => key)
        last = found.at(-1)
        return found.filter(goes)
      }
      await this.#commitRemoval(bucket, undefined, { keys })
      if (last === undefined) return
      from = justAfter(last)
    }
  }

  #removeThese(
    bucket: BucketRow,
    keys: readonly Buffer[],
    order: Pick<Removal, 'order' | 'version'> = {},
  ): Promise<RemovedKeysResult> {
    const locked = keys.length <= MAX_LOCKS && !this.#parts.rules.concernOthers ? keys : undefined
    return this.#commitRemoval(bucket, locked, { keys: async () => keys, ...order })
  }

  /** @param locked the keys; undefined when the change must be alone in the bucket */
  async #commitRemoval(
    bucket: BucketRow,
    locked: readonly Buffer[] | undefined,
    removal: Removal,
  ): Promise<RemovedKeysResult> {
    const alone = locked === undefined
    const work = (tables: ChangeTables) => removeKeys(this.#parts, tables, bucket, removal, alone)
    const { stored, ...result } = await this.#db.transaction(work, locksOf(bucket, locked ?? [], alone))
    this.#committed(bucket, stored)
    return result
  }

  /** What follows a commit: bodies without a row are discarded, and now and then the numbers of the bucket folded. */
  #committed({ id }: BucketRow, freed: Stored): void {
    for (const body of freed) this.#bodies.discard(body)
    const changes = (this.#changes.get(id) ?? 0) + 1
    this.#changes.set(id, changes % FOLD_EVERY)
    // What fails now is folded later.
    if (changes === FOLD_EVERY) this.#db.transaction(({ buckets }) => buckets.fold(id)).catch(() => {})
  }
}
