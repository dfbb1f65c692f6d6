import { createHash } from 'node:crypto'
import { NetworkError } from '../../network/network.js'
import { Turns } from '../../network/turns.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import type { ObjectRow } from '../store/objects.js'
import { firstThatDoes } from './copies-in-deals.js'
import type { HeldCopy } from './manifest.js'

type Tools = Pick<GatewayContext, 'manifest' | 'network' | 'log' | 'objects' | 'blobs' | 'copies' | 'limits' | 'tasks'>

/** Objects brought back at the same time; the others wait. */
const AT_ONCE = 8

interface Running {
  /** The one deal that it is brought back from. */
  readonly dealCid: string | undefined
  readonly ended: Promise<void>
}

/** Takes back the bodies of cold objects, each once at a time however many ask for it. */
export class BringBack {
  readonly #tools: Tools
  readonly #turns = new Turns(AT_ONCE)
  /** By generation. */
  readonly #running = new Map<string, Running>()

  constructor(tools: Tools) {
    this.#tools = tools
  }

  /**
   * Resolves when the object of this key has its body here; its generation does not change. Does nothing when it has, or when it is overwritten or removed
   * meanwhile. Throws GatewayError RetrievalFailed when no deal delivers.
   * @param dealCid the one deal to bring it back from, unless it is on its way already; any by default
   */
  async run(bucket: BucketRow, key: Buffer, dealCid?: string): Promise<void> {
    for (;;) {
      const row = this.#tools.objects.find(bucket.id, key)
      if (row?.bodyAt !== 'network') return
      const running = this.#running.get(row.generation) ?? this.#start(bucket, row, dealCid)
      try {
        return await running.ended
      } catch (error) {
        if (!(error instanceof GatewayError) || error.kind !== 'RetrievalFailed') throw error
        // Another caller's one deal failed, which says nothing of the deals that are meant here.
        const others = running.dealCid !== undefined && running.dealCid !== dealCid
        const replaced = this.#tools.objects.find(bucket.id, key)?.generation !== row.generation
        if (!others && !replaced) throw error
      }
    }
  }

  #start(bucket: BucketRow, row: ObjectRow, dealCid: string | undefined): Running {
    const ended = this.#tools.tasks
      .run((signal) => this.#turns.run(() => this.#bringBack(bucket, row, dealCid, signal), signal))
      .finally(() => this.#running.delete(row.generation))
    const running = { dealCid, ended }
    this.#running.set(row.generation, running)
    return running
  }

  async #bringBack(bucket: BucketRow, row: ObjectRow, dealCid: string | undefined, signal: AbortSignal): Promise<void> {
    const { copies, limits } = this.#tools
    const small = row.size <= limits.inlineBytes
    const read = (copy: HeldCopy) => (small ? this.#toMemory(row, copy, signal) : this.#toFile(row, copy, signal))
    const body = await firstThatDoes<Buffer | undefined>(this.#tools, row.generation, read, dealCid)
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
    const { blobs } = this.#tools
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

  /** Hands over all of the body, and throws NetworkError when it is not that of the object. */
  async #read(
    { size, etag }: ObjectRow,
    { dealCid, minerId, file }: HeldCopy,
    signal: AbortSignal,
    take: (chunk: Buffer) => Promise<void>,
  ): Promise<void> {
    const md5 = isMd5(etag) ? createHash('md5') : undefined
    let received = 0
    for await (const chunk of this.#tools.network.retrieve(dealCid, file, signal)) {
      received += chunk.length
      if (received > size) break
      md5?.update(chunk)
      await take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length))
    }
    if (received !== size || (md5 !== undefined && md5.digest('hex') !== etag)) {
      throw new NetworkError('NotRetrievable', `What provider ${minerId} delivered is not the object.`)
    }
  }
}

/** ETags of multipart uploads, for example, are no digest of the body. */
export function isMd5(etag: string): boolean {
  return /^[0-9a-f]{32}$/.test(etag)
}
