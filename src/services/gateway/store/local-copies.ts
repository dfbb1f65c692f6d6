import { read } from 'node:fs'
import type { Writer } from '../../database.js'
import { GatewayError } from '../errors.js'
import type { Blobs } from './blobs.js'
import type { BucketRow, Buckets } from './buckets.js'
import type { Holds } from './holds.js'
import type { ObjectRow, Objects } from './objects.js'

/**
 * Evicts and restores the bodies of objects whose rows stay. Each change is one transaction and durable once the
 * promise resolves.
 */
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
      this.#objects.move(bucket.id, row, 'network')
      if (row.bodyAt === 'index') this.#objects.removeBody(generation)
      this.#buckets.count(bucket.id, 0, -row.size)
      return row
    })
    if (row.bodyAt === 'file') this.#blobs.discard(generation)
  }

  /**
   * Restores the local body of an object. Resolves with false, and discards the body, when the object has been
   * overwritten or removed since.
   * @param body absent when the body is already on the disk, in the file named by the generation
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
      if (!inline && back) this.#blobs.committed(generation)
      else if (!inline) this.#blobs.discard(generation)
    }
    return back
  }
}

export function refused(value: string): GatewayError {
  return new GatewayError('EvictionRefused', { value })
}

/** An open local body. It can be read to its end even when its object is overwritten or removed meanwhile. */
export interface LocalBody {
  /** Reads up to `length` bytes; fewer only at the end of the body, and none after it. */
  read(position: number, length: number): Promise<Buffer>
  close(): Promise<void>
}

/** Returns undefined when the body of this generation is not complete on this disk. */
export async function openLocalBody(
  { objects, blobs, holds }: { readonly objects: Objects; readonly blobs: Blobs; readonly holds: Holds },
  generation: string,
): Promise<LocalBody | undefined> {
  const inline = objects.inlineBody(generation)
  if (inline !== undefined) {
    return {
      read: async (position, length) => inline.subarray(position, position + length),
      close: async () => {},
    }
  }
  try {
    const handle = await blobs.open(generation)
    // The file of a body that is being restored, or whose restore a crash interrupted, has its final name already. It
    // counts once the index names it.
    if (!objects.hasFile(generation) && !holds.isRetained(generation)) {
      await handle.close()
      return undefined
    }
    return { read: (position, length) => readAt(handle.fd, position, length), close: () => handle.close() }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function readAt(fd: number, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length)
  let filled = 0
  while (filled < length) {
    const bytes = await readInto(fd, buffer, filled, position + filled)
    if (bytes === 0) break
    filled += bytes
  }
  return buffer.subarray(0, filled)
}

function readInto(fd: number, buffer: Buffer, offset: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, offset, buffer.length - offset, position, (error, bytes) =>
      error === null ? resolve(bytes) : reject(error),
    )
  })
}
