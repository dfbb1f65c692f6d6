import type { Writer } from '../../database.js'
import { type Bodies, bodyInMemory, type OpenBody, type StoredBody } from '../../store/bodies.js'
import { GatewayError } from '../errors.js'
import type { BucketRow, Buckets } from './buckets.js'
import type { Holds } from './holds.js'
import { type ObjectRow, type Objects, storedBodyOf } from './objects.js'

/**
 * Evicts and restores the bodies of objects whose rows stay. Each change is one transaction and durable once the
 * promise resolves.
 */
export class LocalCopies {
  readonly #writer: Writer
  readonly #buckets: Buckets
  readonly #objects: Objects
  readonly #bodies: Bodies
  readonly #holds: Holds

  constructor(writer: Writer, buckets: Buckets, objects: Objects, bodies: Bodies, holds: Holds) {
    this.#writer = writer
    this.#buckets = buckets
    this.#objects = objects
    this.#bodies = bodies
    this.#holds = holds
  }

  /**
   * Returns the object if it has this generation and a local body. Throws GatewayError EvictionRefused or NoSuchKey.
   */
  mustBeHere(bucket: BucketRow, key: Buffer, generation: string): ObjectRow {
    const row = this.#objects.find(bucket.id, key)
    if (row === undefined) throw new GatewayError('NoSuchKey')
    if (row.generation !== generation) {
      throw refused('The object has been overwritten and has another generation now. Nothing was removed.')
    }
    if (row.bodyAt === 'network') throw refused('The object has no local copy.')
    if (this.#holds.covers(bucket.id, generation)) {
      throw refused('A pending deal reads the object: try again when the deal has been made. Nothing was removed.')
    }
    return row
  }

  /**
   * Removes the local body of an object that `mustBeHere` accepts; throws as `mustBeHere` does.
   * @param lastLook called inside the transaction that removes the body; if it throws, the body stays
   */
  async evict(bucket: BucketRow, key: Buffer, generation: string, lastLook: () => void): Promise<void> {
    const row = await this.#writer.run(() => {
      const row = this.mustBeHere(bucket, key, generation)
      lastLook()
      this.#objects.move(bucket.id, row, undefined)
      if (row.bodyAt === 'index') this.#objects.removeBody(generation)
      this.#buckets.count(bucket.id, 0, -row.size)
      return row
    })
    if (row.bodyAt === 'file') this.#bodies.discard(storedBodyOf(row))
  }

  /**
   * Restores the local body of an object. Resolves with false, and discards the body, when the object has been
   * overwritten or removed since.
   */
  async bringBack(bucket: BucketRow, key: Buffer, generation: string, body: Buffer | StoredBody): Promise<boolean> {
    let back = false
    try {
      back = await this.#writer.run(() => {
        const row = this.#objects.find(bucket.id, key)
        if (row?.generation !== generation || row.bodyAt !== 'network') return false
        this.#objects.move(bucket.id, row, body)
        this.#buckets.count(bucket.id, 0, row.size)
        return true
      })
    } finally {
      if (!Buffer.isBuffer(body)) {
        if (back) this.#bodies.committed(body)
        else this.#bodies.discard(body)
      }
    }
    return back
  }
}

export function refused(value: string): GatewayError {
  return new GatewayError('EvictionRefused', { value })
}

/** Resolves with undefined when the body of this generation is not here. */
export async function openLocalBody(
  { objects, bodies, holds }: { readonly objects: Objects; readonly bodies: Bodies; readonly holds: Holds },
  generation: string,
): Promise<OpenBody | undefined> {
  const inline = objects.inlineBody(generation)
  if (inline !== undefined) return bodyInMemory(inline)
  const stored = objects.storedBody(generation) ?? holds.retained(generation)
  return stored && bodies.open(stored)
}
