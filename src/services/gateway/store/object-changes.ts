import { type Clock, rfc3339 } from '../../clock.js'
import type { Writer } from '../../database.js'
import type { Bodies, StoredBody } from '../../store/bodies.js'
import type { Quotas } from '../accounts/accounts.js'
import { GatewayError } from '../errors.js'
import type { BucketRow, Buckets } from './buckets.js'
import { type Fences, isRepeated, type LastWrite, MAX_FENCE, type WriteOrder } from './fences.js'
import type { Holds } from './holds.js'
import type { KeyRules } from './key-rules.js'
import { bytesHere, type Freed, type ObjectRow, type Objects, storedBodyOf } from './objects.js'
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
  readonly order: () => WriteOrder | undefined
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

const REMOVE_BATCH = 500

/**
 * Changes objects. Each change is one transaction and durable once the promise resolves; bodies without a row are
 * discarded after it.
 */
export class ObjectChanges {
  readonly #writer: Writer
  readonly #buckets: Buckets
  readonly #objects: Objects
  readonly #bodies: Bodies
  readonly #clock: Clock
  readonly #rules: KeyRules
  readonly #holds: Holds
  readonly #fences: Fences | undefined
  readonly #quotas: Quotas

  constructor(
    writer: Writer,
    buckets: Buckets,
    objects: Objects,
    bodies: Bodies,
    clock: Clock,
    rules: KeyRules,
    holds: Holds,
    /** Absent: writes take effect in the order of their arrival. */
    fences: Fences | undefined,
    quotas: Quotas,
  ) {
    this.#writer = writer
    this.#buckets = buckets
    this.#objects = objects
    this.#bodies = bodies
    this.#clock = clock
    this.#rules = rules
    this.#holds = holds
    this.#fences = fences
    this.#quotas = quotas
  }

  /**
   * Throws GatewayError Overtaken, OtherGeneration or WriteIdReused when an upload with this order would be refused
   * now.
   */
  mayStillUpload(bucket: BucketRow, key: Buffer, order: WriteOrder): void {
    this.#admit(bucket, key, order, 'upload')
  }

  /** Throws GatewayError QuotaExceeded when the owner of the bucket has no room for such an object now. */
  mustHaveRoom(bucket: BucketRow, key: Buffer, size: number): void {
    const quota = this.#quotas.of(bucket.owner)
    if (quota === undefined) return
    const present = this.#objects.find(bucket.id, key)
    // A pending deal keeps the present body, which counts on.
    const freed = present && !this.#holds.covers(bucket.id, present.generation) ? bytesHere(present) : 0
    const bytes = size - freed
    this.#quotas.mustHaveRoom(bucket.owner, quota, { bytes, objects: present ? 0 : 1 })
  }

  /**
   * Stores the object, replacing one of the same key; repeating a draft changes nothing. On failure the body of the
   * draft is discarded. Throws GatewayError Overtaken, OtherGeneration, WriteIdReused or QuotaExceeded.
   */
  async put(bucket: BucketRow, draft: Draft): Promise<ObjectRow> {
    const stored = Buffer.isBuffer(draft.body) ? undefined : draft.body
    try {
      const { row, freed } = await this.#writer.run(() => this.#put(bucket, draft), { mayUseReserve: false })
      if (stored !== undefined) {
        if (row.generation === draft.generation) this.#bodies.committed(stored)
        else this.#bodies.discard(stored)
      }
      this.#discard(freed)
      return row
    } catch (error) {
      if (stored !== undefined) this.#bodies.discard(stored)
      throw error
    }
  }

  /**
   * Keeps a record with the object, or none (''). Counts as a write to the key: none with a lower fence takes effect
   * later. Throws GatewayError OtherGeneration or Overtaken.
   */
  async keepRecord(bucket: BucketRow, key: Buffer, { generation, record, fence }: KeptRecord): Promise<void> {
    const run = () => {
      this.#mustStillBe(bucket)
      const last = this.#objects.lastWrite(bucket.id, key)
      if (last?.generation !== generation) throw new GatewayError('OtherGeneration')
      // As for writes: the highest fence must not keep all others out.
      if (fence < last.fence && last.fence < MAX_FENCE) throw new GatewayError('Overtaken', { fence: last.fence })
      this.#objects.keepRecord(bucket.id, key, generation, record, fence)
    }
    await this.#writer.run(run, { mayUseReserve: false })
  }

  /**
   * Removes one object in its order among the writes to its key; a missing object is no error. Throws GatewayError
   * Overtaken, OtherGeneration or WriteIdReused.
   */
  async removeInOrder(bucket: BucketRow, key: Buffer, order: WriteOrder): Promise<void> {
    await this.#removeBatch(bucket, () => [key], order)
  }

  /** Removes exactly these keys; missing keys are no error. Resolves with the number of removed objects. */
  async remove(bucket: BucketRow, keys: readonly Buffer[]): Promise<number> {
    let removed = 0
    for (let at = 0; at < keys.length; at += REMOVE_BATCH) {
      removed += await this.#removeBatch(bucket, () => keys.slice(at, at + REMOVE_BATCH))
    }
    return removed
  }

  /** Removes all objects whose key starts with `prefix` and for which `goes` returns true. */
  async removeBeneath(bucket: BucketRow, prefix: Buffer, goes: (key: Buffer) => boolean): Promise<void> {
    let from = prefix
    for (;;) {
      let last: Buffer | undefined
      await this.#removeBatch(bucket, () => {
        const keys = this.#objects.page(bucket.id, from, above(prefix), REMOVE_BATCH).map(({ key }) => key)
        last = keys.at(-1)
        return keys.filter(goes)
      })
      if (last === undefined) return
      from = justAfter(last)
    }
  }

  #put(bucket: BucketRow, draft: Draft): { row: ObjectRow; freed: Stored } {
    this.#mustStillBe(bucket)
    if (draft.abandoned()) throw new GatewayError('IncompleteBody')
    const write = this.#admit(bucket, draft.key, draft.order(), 'upload')
    if (write === 'repeated') return { row: this.#same(bucket, draft), freed: [] }
    this.#rules.mayPut(bucket, draft.key, draft.size)
    this.mustHaveRoom(bucket, draft.key, draft.size)
    const freed = this.#objects.remove(bucket.id, draft.key)
    const { body, record, order: _, abandoned: __, ...rest } = draft
    const inline = Buffer.isBuffer(body)
    const row: ObjectRow = {
      ...rest,
      ...write,
      modified: rfc3339(this.#clock.now()),
      bodyAt: inline ? 'index' : 'file',
      bodyName: inline ? draft.generation : body.name,
      bodyMark: inline ? null : body.mark,
    }
    if (freed === undefined) this.#fences?.forget(bucket.id, draft.key)
    if (freed === undefined) this.#rules.entryChanged(bucket.id, draft.key, row.modified)
    this.#objects.put(bucket.id, row, inline ? body : undefined, record)
    this.#buckets.count(
      bucket.id,
      freed === undefined ? 1 : 0,
      draft.size - (freed === undefined ? 0 : bytesHere(freed)),
    )
    return { row, freed: freed === undefined ? [] : this.#letGo(bucket, [freed]) }
  }

  /**
   * Returns the object that this draft has already created. Throws GatewayError WriteIdReused when it was created from
   * other bytes.
   */
  #same(bucket: BucketRow, { key, size, etag }: Draft): ObjectRow {
    const row = this.#objects.find(bucket.id, key)
    if (row?.size !== size || row.etag !== etag) throw new GatewayError('WriteIdReused')
    return row
  }

  /** Returns the order to record as the last write to the key; `repeated` when it is recorded already. */
  #admit(bucket: BucketRow, key: Buffer, order: WriteOrder | undefined, kind: WriteKind): LastWrite | 'repeated' {
    if (this.#fences === undefined) return { fence: 0, writeId: null }
    const { last, generation } = this.#lastWrite(this.#fences, bucket, key)
    if (!isRepeated(order, last)) return this.#fences.admit(order, last, generation)
    const earlier: WriteKind = generation === undefined ? 'removal' : 'upload'
    if (earlier !== kind) throw new GatewayError('WriteIdReused')
    return 'repeated'
  }

  #lastWrite(fences: Fences, bucket: BucketRow, key: Buffer): { last: LastWrite; generation: string | undefined } {
    const last = this.#objects.lastWrite(bucket.id, key)
    return { last: last ?? fences.ofRemoved(bucket, key), generation: last?.generation }
  }

  async #removeBatch(bucket: BucketRow, keys: () => readonly Buffer[], order?: WriteOrder): Promise<number> {
    const { removed, stored } = await this.#writer.run(() => {
      this.#mustStillBe(bucket)
      const freed: Freed[] = []
      const pruned: Freed[] = []
      for (const key of keys()) {
        const write = this.#admit(bucket, key, order, 'removal')
        if (write === 'repeated') continue
        const one = this.#objects.remove(bucket.id, key)
        // A removal of a missing object also refuses uploads that were sent before it.
        if (one !== undefined || order !== undefined) this.#fences?.remember(bucket, key, write)
        if (one === undefined) continue
        freed.push(one)
        for (const folder of this.#rules.emptiedFolders(bucket.id, key)) {
          const empty = this.#objects.remove(bucket.id, folder)
          if (empty !== undefined) pruned.push(empty)
        }
        this.#rules.entryChanged(bucket.id, key, rfc3339(this.#clock.now()))
      }
      const gone = [...freed, ...pruned]
      const bytes = gone.reduce((sum, one) => sum + bytesHere(one), 0)
      if (gone.length > 0) this.#buckets.count(bucket.id, -gone.length, -bytes)
      return { removed: freed.length, stored: this.#letGo(bucket, gone) }
    })
    this.#discard(stored)
    return removed
  }

  /** The bucket may have been deleted, and created again, while a body was arriving. */
  #mustStillBe(bucket: BucketRow): void {
    if (this.#buckets.find(bucket.name)?.id !== bucket.id)
      throw new GatewayError('NoSuchBucket', { bucket: bucket.name })
  }

  #letGo(bucket: BucketRow, freed: readonly Freed[]): Stored {
    return freed.filter((one) => this.#holds.letGo(bucket.id, one)).map(storedBodyOf)
  }

  #discard(stored: Stored): void {
    for (const body of stored) this.#bodies.discard(body)
  }
}
