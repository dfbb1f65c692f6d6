import type { Writer } from '../../database.js'
import { GatewayError } from '../errors.js'
import type { Blobs } from './blobs.js'
import type { BucketRow, Buckets } from './buckets.js'
import type { Holds } from './holds.js'
import type { ObjectRow, Objects } from './objects.js'

/** Giving up and taking back the bodies of objects whose rows stay. Each change is one transaction, durable once the promise resolves. */
export class LocalCopies {
  readonly #writer: Writer
  readonly #buckets: Buckets
  readonly #objects: Objects
  readonly #blobs: Blobs
  readonly #holds: Holds

  constructor(writer: Writer, buckets: Buckets, objects: Objects, blobs: Blobs, holds: Holds) {
    this.#writer = writer
    this.#buckets = buckets
    this.#objects = objects
    this.#blobs = blobs
    this.#holds = holds
  }

  /** The object, while it is of this generation with its body here. Throws GatewayError EvictionRefused, NoSuchKey. */
  mustBeHere(bucket: BucketRow, key: Buffer, generation: string): ObjectRow {
    const row = this.#objects.find(bucket.id, key)
    if (row === undefined) throw new GatewayError('NoSuchKey')
    if (row.generation !== generation) {
      throw refused('The object has been overwritten: this is not the generation it has now. Nothing was removed.')
    }
    if (row.bodyAt === 'network') throw refused('The object has no local copy.')
    if (this.#holds.covers(bucket.id, generation)) {
      throw refused('A deal is being made of the object: try again when that has ended. Nothing was removed.')
    }
    return row
  }

  /**
   * Removes the body of an object that still is as `mustBeHere` wants it; throws as that does.
   * @param lastLook called in the transaction that gives the body up; what it throws keeps it
   */
  async evict(bucket: BucketRow, key: Buffer, generation: string, lastLook: () => void): Promise<void> {
    const row = await this.#writer.run(() => {
      const row = this.mustBeHere(bucket, key, generation)
      lastLook()
      this.#objects.move(bucket.id, row, 'network')
      if (row.bodyAt === 'index') this.#objects.removeBody(generation)
      this.#buckets.count(bucket.id, 0, -row.size)
      return row
    })
    if (row.bodyAt === 'file') this.#blobs.discard(generation)
  }

  /**
   * Gives a body back to an object that has none here, unless it has been overwritten or removed since: false, then, and the body is let go.
   * @param body absent: it lies, on the disk already, in the file named by the generation
   */
  async bringBack(bucket: BucketRow, key: Buffer, generation: string, body: Buffer | undefined): Promise<boolean> {
    const inline = body !== undefined
    let back = false
    try {
      back = await this.#writer.run(() => {
        const row = this.#objects.find(bucket.id, key)
        if (row?.generation !== generation || row.bodyAt !== 'network') return false
        this.#objects.move(bucket.id, row, inline ? 'index' : 'file', body)
        this.#buckets.count(bucket.id, 0, row.size)
        return true
      })
    } finally {
      if (!inline && back) this.#blobs.settled(generation)
      else if (!inline) this.#blobs.discard(generation)
    }
    return back
  }
}

function refused(value: string): GatewayError {
  return new GatewayError('EvictionRefused', { value })
}
