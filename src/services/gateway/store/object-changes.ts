import { type Clock, rfc3339 } from '../../clock.js'
import { type Bodies, mustBeNew, type StoredBody } from '../../store/bodies.js'
import type { Database, TransactionOptions } from '../../store/database.js'
import type { AccountQuota, Quotas } from '../accounts/accounts.js'
import { GatewayError } from '../errors.js'
import { type BucketRow, type Buckets, bucketLock } from './buckets.js'
import { type Fences, isRepeated, type LastWrite, MAX_FENCE, type RemovedKeys, type WriteOrder } from './fences.js'
import type { Holds } from './holds.js'
import type { KeyRules } from './key-rules.js'
import type { LateTables } from './late-orders.js'
import { giveUp, keyLock } from './local-copies.js'
import { bytesHere, type Freed, type ObjectRow, storedBodyOf } from './objects.js'
import { above, justAfter } from './scan.js'

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

type WriteKind = 'upload' | 'removal'

interface Admitted {
  /** The order to record as the last write to the key; `repeated` when it is recorded already. */
  readonly write: LastWrite | 'repeated'
  /** True when it is known that no object has the key, whose fence may be kept as that of a removed one. */
  readonly isAbsent: boolean
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
  readonly #fences: Fences | undefined
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
    this.#fences = fences
  }

  /**
   * Throws GatewayError Overtaken, OtherGeneration or WriteIdReused when an upload with this order would be refused
   * now.
   */
  async mayStillUpload(bucket: BucketRow, key: Buffer, order: WriteOrder): Promise<void> {
    await this.#admit(this.#db.read, bucket, key, order, 'upload')
  }

  /** Throws GatewayError QuotaExceeded when the owner of the bucket has no room for such an object now. */
  async mustHaveRoom(bucket: BucketRow, key: Buffer, size: number): Promise<void> {
    const { read } = this.#db
    await this.#mustHaveRoom(read, bucket, key, size, await read.quotas.of(bucket.owner))
  }

  async #mustHaveRoom(
    tables: ChangeTables,
    bucket: BucketRow,
    key: Buffer,
    size: number,
    quota: AccountQuota | undefined,
  ): Promise<void> {
    const { quotas, objects, holds } = tables
    if (quota === undefined) return
    const present = await objects.find(bucket.id, key)
    // A pending deal keeps the present body, which counts on.
    const isFreed = present && !(await holds.covers(bucket.id, present.generation))
    const bytes = size - (isFreed ? bytesHere(present) : 0)
    await quotas.mustHaveRoom(bucket.owner, quota, { bytes, objects: present ? 0 : 1 })
  }

  /**
   * Stores the object, replacing one of the same key; repeating a draft changes nothing. On failure the body of the
   * draft is discarded, unless the outcome is not known. Throws GatewayError Overtaken, OtherGeneration, WriteIdReused
   * or QuotaExceeded.
   */
  async put(bucket: BucketRow, draft: Draft): Promise<ObjectRow> {
    const stored = Buffer.isBuffer(draft.body) ? undefined : draft.body
    try {
      const options = { takesRoom: true, ...changing(bucket, [draft.key], this.#rules.concernOthers) }
      const { row, freed } = await this.#db.transaction((tables) => this.#put(tables, bucket, draft), options)
      if (stored !== undefined) {
        if (row.generation === draft.generation) this.#bodies.committed(stored)
        else this.#bodies.discard(stored)
      }
      this.#discard(freed)
      this.#fold(bucket.id)
      return row
    } catch (error) {
      if (stored !== undefined) giveUp(this.#bodies, stored, error)
      throw error
    }
  }

  /**
   * Keeps a record with the object, or none (''). Counts as a write to the key: none with a lower fence takes effect
   * later. Throws GatewayError OtherGeneration or Overtaken.
   */
  async keepRecord(bucket: BucketRow, key: Buffer, { generation, record, fence }: KeptRecord): Promise<void> {
    const run = async (tables: ChangeTables) => {
      await mustStillBe(tables, bucket, false)
      const last = await tables.objects.lastWrite(bucket.id, key)
      if (last?.generation !== generation) throw new GatewayError('OtherGeneration')
      // As for writes: the highest fence must not keep all others out.
      if (fence < last.fence && last.fence < MAX_FENCE) throw new GatewayError('Overtaken', { fence: last.fence })
      await tables.objects.keepRecord(bucket.id, key, generation, record, fence)
    }
    await this.#db.transaction(run, { takesRoom: true, locks: [keyLock(bucket, key)] })
  }

  /**
   * Removes one object in its order among the writes to its key; a missing object is no error. Throws GatewayError
   * Overtaken, OtherGeneration or WriteIdReused.
   */
  async removeInOrder(bucket: BucketRow, key: Buffer, order: WriteOrder): Promise<void> {
    await this.#removeKeys(bucket, [key], order)
  }

  /** Removes exactly these keys; missing keys are no error. Resolves with the number of removed objects. */
  async remove(bucket: BucketRow, keys: readonly Buffer[]): Promise<number> {
    let removed = 0
    for (let at = 0; at < keys.length; at += REMOVE_BATCH) {
      removed += await this.#removeKeys(bucket, keys.slice(at, at + REMOVE_BATCH))
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

  async #put(tables: ChangeTables, bucket: BucketRow, draft: Draft): Promise<{ row: ObjectRow; freed: Stored }> {
    const { buckets, objects, quotas, removed } = tables
    const held = await mustStillBe(tables, bucket, this.#rules.concernOthers)
    if (draft.abandoned()) throw new GatewayError('IncompleteBody')
    const { write, isAbsent } = await this.#admit(tables, bucket, draft.key, await draft.order(tables), 'upload')
    if (write === 'repeated') return { row: await same(tables, bucket, draft), freed: [] }
    await this.#rules.mayPut(tables, bucket, draft.key, draft.size)
    await this.#mustHaveRoom(tables, bucket, draft.key, draft.size, await quotas.lock(bucket.owner))
    const freed = isAbsent ? undefined : await objects.remove(bucket.id, draft.key)
    const { body, record, order: _, abandoned: __, ...rest } = draft
    const inline = Buffer.isBuffer(body)
    if (!inline) mustBeNew(body)
    const row: ObjectRow = {
      ...rest,
      ...write,
      modified: rfc3339(this.#clock.now()),
      bodyAt: inline ? 'index' : 'file',
      bodyName: inline ? draft.generation : body.name,
      bodyMark: inline ? null : body.mark,
    }
    if (freed === undefined) {
      if (isAbsent) await removed.forget(bucket.id, draft.key)
      await this.#rules.entryChanged(tables, bucket.id, draft.key, row.modified)
    }
    await objects.put(bucket.id, row, inline ? body : undefined, record)
    await buckets.count(
      bucket.id,
      freed === undefined ? 1 : 0,
      draft.size - (freed === undefined ? 0 : bytesHere(freed)),
    )
    return { row, freed: freed === undefined ? [] : await this.#letGo(tables, bucket, [freed], held) }
  }

  async #admit(
    tables: ChangeTables,
    bucket: BucketRow,
    key: Buffer,
    order: WriteOrder | undefined,
    kind: WriteKind,
  ): Promise<Admitted> {
    if (this.#fences === undefined) return { write: { fence: 0, writeId: null }, isAbsent: false }
    const present = await tables.objects.lastWrite(bucket.id, key)
    const last = present ?? (await this.#fences.ofRemoved(tables, bucket, key))
    const generation = present?.generation
    const isAbsent = present === undefined
    if (!isRepeated(order, last)) return { write: this.#fences.admit(order, last, generation), isAbsent }
    const earlier: WriteKind = isAbsent ? 'removal' : 'upload'
    if (earlier !== kind) throw new GatewayError('WriteIdReused')
    return { write: 'repeated', isAbsent }
  }

  #removeKeys(bucket: BucketRow, keys: readonly Buffer[], order?: WriteOrder): Promise<number> {
    const locked = keys.length <= MAX_LOCKS && !this.#rules.concernOthers ? keys : undefined
    return this.#removeBatch(bucket, locked, async () => keys, order)
  }

  /** @param locked the keys; undefined when the change must be alone in the bucket */
  async #removeBatch(
    bucket: BucketRow,
    locked: readonly Buffer[] | undefined,
    keysIn: Keys,
    order?: WriteOrder,
  ): Promise<number> {
    const work = async (tables: ChangeTables) => {
      const { objects, buckets } = tables
      const held = await mustStillBe(tables, bucket, locked === undefined)
      const freed: Freed[] = []
      const pruned: Freed[] = []
      for (const key of await keysIn(tables)) {
        const { write } = await this.#admit(tables, bucket, key, order, 'removal')
        if (write === 'repeated') continue
        const one = await objects.remove(bucket.id, key)
        // A removal of a missing object also refuses uploads that were sent before it.
        if (one !== undefined || order !== undefined) await this.#fences?.remember(tables, bucket, key, write)
        if (one === undefined) continue
        freed.push(one)
        for await (const folder of this.#rules.emptiedFolders(tables, bucket.id, key)) {
          const empty = await objects.remove(bucket.id, folder)
          if (empty !== undefined) pruned.push(empty)
        }
        await this.#rules.entryChanged(tables, bucket.id, key, rfc3339(this.#clock.now()))
      }
      const gone = [...freed, ...pruned]
      const bytes = gone.reduce((sum, one) => sum + bytesHere(one), 0)
      if (gone.length > 0) await buckets.count(bucket.id, -gone.length, -bytes)
      return { removed: freed.length, stored: await this.#letGo(tables, bucket, gone, held) }
    }
    const options = changing(bucket, locked ?? [], locked === undefined)
    const { removed, stored } = await this.#db.transaction(work, options)
    this.#discard(stored)
    this.#fold(bucket.id)
    return removed
  }

  async #letGo(tables: ChangeTables, { id }: BucketRow, freed: readonly Freed[], held: boolean): Promise<Stored> {
    const stored: StoredBody[] = []
    for (const one of freed) if (await this.#holds.letGo(tables, id, one, held)) stored.push(storedBodyOf(one))
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
 * The bucket may have been deleted, and created again, while a body was arriving. Resolves with true when a deal in the
 * making may read its bodies.
 */
async function mustStillBe({ buckets }: ChangeTables, { id, name }: BucketRow, alone: boolean): Promise<boolean> {
  const bucket = await buckets.lock(name, alone)
  if (bucket?.id !== id) throw new GatewayError('NoSuchBucket', { bucket: name })
  return bucket.held === 1
}

/**
 * Returns the object that this draft has already created. Throws GatewayError WriteIdReused when it was created from
 * other bytes.
 */
async function same({ objects }: ChangeTables, bucket: BucketRow, { key, size, etag }: Draft): Promise<ObjectRow> {
  const row = await objects.find(bucket.id, key)
  if (row?.size !== size || row.etag !== etag) throw new GatewayError('WriteIdReused')
  return row
}
