import { createHash } from 'node:crypto'
import { abortableLimit } from '../../abortable-limit.js'
import { NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import type { ObjectRow } from '../store/objects.js'
import { firstThatDoes } from './copies-in-deals.js'
import type { HeldCopy } from './manifest.js'

type RestoreContext = Pick<
  GatewayContext,
  'manifest' | 'network' | 'log' | 'objects' | 'blobs' | 'copies' | 'limits' | 'tasks'
>

/** Most objects restored at the same time. */
const AT_ONCE = 8

interface Running {
  /** The only deal to restore from; absent: any deal. */
  readonly dealCid: string | undefined
  readonly ended: Promise<void>
}

/** Restores the bodies of objects without a local copy. Concurrent requests for one object share one restore. */
export class BringBack {
  readonly #context: RestoreContext
  readonly #slots = abortableLimit(AT_ONCE)
  /** Restores under way, by generation. */
  readonly #running = new Map<string, Running>()

  constructor(context: RestoreContext) {
    this.#context = context
  }

  /**
   * Resolves when the object of this key has a local body; its generation does not change. Does nothing when it has
   * one, or when it is overwritten or removed meanwhile. Throws GatewayError RetrievalFailed when no deal delivers.
   * @param dealCid the only deal to restore from, unless a restore is already under way; default any deal
   */
  async run(bucket: BucketRow, key: Buffer, dealCid?: string): Promise<void> {
    for (;;) {
      const row = this.#context.objects.find(bucket.id, key)
      if (row?.bodyAt !== 'network') return
      const running = this.#running.get(row.generation) ?? this.#start(bucket, row, dealCid)
      try {
        return await running.ended
      } catch (error) {
        if (!(error instanceof GatewayError) || error.kind !== 'RetrievalFailed') throw error
        // The restore of another caller from one deal failed. That says nothing about the deals wanted here.
        const others = running.dealCid !== undefined && running.dealCid !== dealCid
        const replaced = this.#context.objects.find(bucket.id, key)?.generation !== row.generation
        if (!others && !replaced) throw error
      }
    }
  }

  #start(bucket: BucketRow, row: ObjectRow, dealCid: string | undefined): Running {
    const ended = this.#context.tasks
      .run((signal) => this.#slots(() => this.#bringBack(bucket, row, dealCid, signal), signal))
      .finally(() => this.#running.delete(row.generation))
    const running = { dealCid, ended }
    this.#running.set(row.generation, running)
    return running
  }

  async #bringBack(bucket: BucketRow, row: ObjectRow, dealCid: string | undefined, signal: AbortSignal): Promise<void> {
    const { copies, limits } = this.#context
    const small = row.size <= limits.inlineBytes
    const read = (copy: HeldCopy) => (small ? this.#toMemory(row, copy, signal) : this.#toFile(row, copy, signal))
    const body = await firstThatDoes<Buffer | undefined>(this.#context, row.generation, read, dealCid)
    await copies.bringBack(bucket, row.key, row.generation, body)
  }

  async #toMemory(row: ObjectRow, copy: HeldCopy, signal: AbortSignal): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    await this.#read(row, copy, signal, async (chunk) => {
      chunks.push(chunk)
    })
    return Buffer.concat(chunks)
  }

  async #toFile(row: ObjectRow, copy: HeldCopy, signal: AbortSignal): Promise<undefined> {
    const { blobs } = this.#context
    const file = await blobs.recreate(row.generation)
    try {
      await this.#read(row, copy, signal, async (chunk) => {
        if (!file.write(chunk)) await file.ready()
      })
      await file.finish()
    } catch (error) {
      await file.abandon()
      blobs.discard(row.generation)
      throw error
    }
  }

  /** Passes on the whole body. Throws NetworkError when it is not the body of the object. */
  async #read(
    { size, etag }: ObjectRow,
    { dealCid, minerId, file }: HeldCopy,
    signal: AbortSignal,
    take: (chunk: Buffer) => Promise<void>,
  ): Promise<void> {
    const md5 = isMd5(etag) ? createHash('md5') : undefined
    let received = 0
    for await (const chunk of this.#context.network.retrieve(dealCid, file, signal)) {
      received += chunk.length
      if (received > size) break
      md5?.update(chunk)
      await take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length))
    }
    if (received !== size || (md5 !== undefined && md5.digest('hex') !== etag)) {
      throw new NetworkError('NotRetrievable', `Provider ${minerId} delivered other bytes than those of the object.`)
    }
  }
}

/** False for ETags that are no digest of the body, such as those of multipart uploads. */
export function isMd5(etag: string): boolean {
  return /^[0-9a-f]{32}$/.test(etag)
}
