import { type Clock, rfc3339 } from '../../clock.js'
import type { Writer } from '../../database.js'
import { GatewayError } from '../errors.js'
import type { Blobs } from './blobs.js'
import type { BucketRow, Buckets } from './buckets.js'
import type { Holds } from './holds.js'
import type { KeyRules } from './key-rules.js'
import { bytesHere, type Freed, type ObjectRow, type Objects } from './objects.js'
import { above } from './scan.js'

/** An object whose body has arrived in full. */
export interface Draft {
  readonly key: Buffer
  readonly size: number
  readonly etag: string
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly generation: string
  /** Absent: it lies, on the disk already, in the file named by `generation`. */
  readonly body?: Buffer
}

/** Names of files that lost their object, to be discarded once that is committed. */
type Files = readonly string[]

/** Rows removed in one transaction at most. */
const REMOVE_BATCH = 500

/** Changes to objects: each is one transaction, durable once the promise resolves; bodies that lost their row are discarded after it. */
export class ObjectStore {
  readonly #writer: Writer
  readonly #buckets: Buckets
  readonly #objects: Objects
  readonly #blobs: Blobs
  readonly #clock: Clock
  readonly #rules: KeyRules
  readonly #holds: Holds

  constructor(
    writer: Writer,
    buckets: Buckets,
    objects: Objects,
    blobs: Blobs,
    clock: Clock,
    rules: KeyRules,
    holds: Holds,
  ) {
    this.#writer = writer
    this.#buckets = buckets
    this.#objects = objects
    this.#blobs = blobs
    this.#clock = clock
    this.#rules = rules
    this.#holds = holds
  }

  /** Puts the object in the place of one of the same key. On failure a file the draft came with is discarded. */
  async put(bucket: BucketRow, draft: Draft): Promise<ObjectRow> {
    const inline = draft.body !== undefined
    try {
      const { row, files } = await this.#writer.run(() => this.#put(bucket, draft))
      if (!inline) this.#blobs.settled(draft.generation)
      this.#discard(files)
      return row
    } catch (error) {
      if (!inline) this.#blobs.discard(draft.generation)
      throw error
    }
  }

  /** Removes these keys and nothing else. Keys that are not there are no error. Resolves with how many there were. */
  async remove(bucket: BucketRow, keys: readonly Buffer[]): Promise<number> {
    let removed = 0
    for (let at = 0; at < keys.length; at += REMOVE_BATCH) {
      removed += await this.#removeBatch(bucket, () => keys.slice(at, at + REMOVE_BATCH))
    }
    return removed
  }

  /** Removes everything whose key starts with `prefix`. Resolves with how many objects that were. */
  async removeBeneath(bucket: BucketRow, prefix: Buffer): Promise<number> {
    const keys = (): Buffer[] =>
      this.#objects.page(bucket.id, prefix, above(prefix), REMOVE_BATCH).map((object) => object.key)
    let removed = 0
    for (;;) {
      const batch = await this.#removeBatch(bucket, keys)
      removed += batch
      if (batch === 0) return removed
    }
  }

  #put(bucket: BucketRow, draft: Draft): { row: ObjectRow; files: Files } {
    this.#mustStillBe(bucket)
    this.#rules.mayPut(bucket.id, draft.key, draft.size)
    const freed = this.#objects.remove(bucket.id, draft.key)
    const { body, ...rest } = draft
    const row: ObjectRow = {
      ...rest,
      modified: rfc3339(this.#clock.now()),
      bodyAt: body === undefined ? 'file' : 'index',
    }
    if (freed === undefined) this.#rules.entryChanged(bucket.id, draft.key, row.modified)
    this.#objects.put(bucket.id, row, body)
    this.#buckets.count(
      bucket.id,
      freed === undefined ? 1 : 0,
      draft.size - (freed === undefined ? 0 : bytesHere(freed)),
    )
    return { row, files: freed === undefined ? [] : this.#letGo(bucket, [freed]) }
  }

  async #removeBatch(bucket: BucketRow, keys: () => readonly Buffer[]): Promise<number> {
    const { removed, files } = await this.#writer.run(() => {
      this.#mustStillBe(bucket)
      const freed: Freed[] = []
      const pruned: Freed[] = []
      for (const key of keys()) {
        const one = this.#objects.remove(bucket.id, key)
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
      return { removed: freed.length, files: this.#letGo(bucket, gone) }
    })
    this.#discard(files)
    return removed
  }

  /** The bucket may have been deleted, and made again, while a body was on its way. */
  #mustStillBe(bucket: BucketRow): void {
    if (this.#buckets.find(bucket.name)?.id !== bucket.id)
      throw new GatewayError('NoSuchBucket', { bucket: bucket.name })
  }

  #letGo(bucket: BucketRow, freed: readonly Freed[]): Files {
    return freed.filter((one) => this.#holds.letGo(bucket.id, one)).map(({ generation }) => generation)
  }

  #discard(files: Files): void {
    for (const generation of files) this.#blobs.discard(generation)
  }
}
