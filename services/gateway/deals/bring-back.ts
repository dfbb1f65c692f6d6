import { createHash } from 'node:crypto'
import { abortableLimit } from '../../failure-counts.js'
import { NetworkError } from '../../network/network.js'
import { BodyError, nameAgain, type StoredBody } from '../../store/bodies.js'
import { haveSameSums } from '../../store/chunk-sums.js'
import { DatabaseUnavailableError } from '../../store/database.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import { isMd5, type ObjectRow } from '../store/object-row.js'
import { wholeBody } from '../store/verify-bodies.js'
import { findVersion } from '../store/version-reads.js'
import type { HeldCopy } from './manifest.js'

type RestoreContext = Pick<GatewayCore, 'db' | 'network' | 'log' | 'bodies' | 'copies' | 'limits' | 'tasks'>

/** Most objects restored at the same time. */
export const MAX_CONCURRENCY = 8

interface RunningRestore {
  /** The only deal to restore from; absent: any deal. */
  readonly dealCid: string | undefined
  readonly ended: Promise<void>
}

/** Restores the bodies of objects without a local copy. Concurrent requests for one object share one restore. */
export class BringBack {
  readonly #context: RestoreContext
  readonly #slots = abortableLimit(MAX_CONCURRENCY)
  /**
   * Restores under way, by generation. Another process may restore the same object: the body that comes second is not
   * needed, and discarded.
   */
  readonly #running = new Map<string, RunningRestore>()

  constructor(context: RestoreContext) {
    this.#context = context
  }

  /**
   * Resolves when the object of this key has a local body; its generation does not change. Does nothing when it has
   * one, or when it is overwritten or removed meanwhile. Throws GatewayError RetrievalFailed when no deal delivers.
   * @param dealCid the only deal to restore from, unless a restore is already under way; default any deal
   * @param generation of the version; default the current one
   */
  async run(bucket: BucketRow, key: Buffer, dealCid?: string, generation?: string): Promise<void> {
    const { read } = this.#context.db
    for (;;) {
      const row = await findVersion(read, bucket.id, key, generation)
      if (row?.bodyAt !== 'network') return
      const running = this.#running.get(row.generation) ?? this.#start(bucket, row, dealCid)
      try {
        return await running.ended
      } catch (error) {
        if (!(error instanceof GatewayError) || error.kind !== 'RetrievalFailed') throw error
        // The restore of another caller from one deal failed. That says nothing about the deals wanted here.
        const others = running.dealCid !== undefined && running.dealCid !== dealCid
        const replaced = (await findVersion(read, bucket.id, key, generation))?.generation !== row.generation
        if (!others && !replaced) throw error
      }
    }
  }

  /**
   * Replaces the local body of an object by that of a deal, if it is lost or damaged: reads all of it first. Resolves
   * with false when it is whole, or when the object has none. Throws GatewayError RetrievalFailed when no deal
   * delivers.
   * @param dealCid as for `run`
   * @param generation as for `run`
   */
  async repair(bucket: BucketRow, key: Buffer, dealCid?: string, generation?: string): Promise<boolean> {
    const row = await findVersion(this.#context.db.read, bucket.id, key, generation)
    if (row === undefined || row.bodyAt === 'network' || (await this.#isWhole(row))) return false
    await (this.#running.get(row.generation) ?? this.#start(bucket, row, dealCid)).ended
    return true
  }

  async #isWhole(row: ObjectRow): Promise<boolean> {
    const { db, bodies } = this.#context
    const { generation, bodyName: name, bodyMark: mark, size, etag, bodyAt } = row
    try {
      if (bodyAt === 'index') return (await db.read.objects.inlineBody(generation)) !== undefined
      const body = { generation, name, mark, size, etag, inIndex: false, body: null, crc: null }
      await wholeBody(db.read, bodies, body)
      return true
    } catch (error) {
      if (error instanceof BodyError && (error.kind === 'changed' || error.kind === 'lost')) return false
      throw error
    }
  }

  #start(bucket: BucketRow, row: ObjectRow, dealCid: string | undefined): RunningRestore {
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
    const read = (copy: HeldCopy) => (small ? this.#toMemory(row, copy, signal) : this.#toStore(row, copy, signal))
    const body = await firstThatDoes<Buffer | StoredBody>(this.#context, row.generation, read, dealCid)
    const damaged = row.bodyAt === 'network' ? undefined : row.bodyName
    await copies.bringBack(bucket, row.key, row.generation, body, damaged)
  }

  async #toMemory(row: ObjectRow, copy: HeldCopy, signal: AbortSignal): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this.#read(row, copy, signal)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  async #toStore(row: ObjectRow, copy: HeldCopy, signal: AbortSignal): Promise<StoredBody> {
    const body = await this.#context.bodies.create(nameAgain(row.generation), row.size)
    try {
      for await (const { buffer, byteOffset, length } of this.#read(row, copy, signal)) {
        if (!body.write(Buffer.from(buffer, byteOffset, length))) await body.ready()
      }
      const stored = await body.finish()
      // They say more than the MD5, which an object of parts does not have.
      const kept = await this.#context.db.read.bodySums.rows(row.generation)
      if (kept.length > 0 && stored.sums !== undefined && !haveSameSums(kept, stored.sums)) throw differs(copy)
      return stored
    } catch (error) {
      await body.abandon()
      throw error
    }
  }

  /** Throws NetworkError when it is not the body of the object. */
  #read(row: ObjectRow, copy: HeldCopy, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    return verified(this.#context.network.retrieve(copy.dealCid, copy.file, signal), row, () => differs(copy))
  }
}

function differs({ minerId }: HeldCopy): NetworkError {
  return new NetworkError('NotRetrievable', `Provider ${minerId} delivered other bytes than those of the object.`)
}

/**
 * Passes on the bytes of an object. Throws what `differs` returns before a chunk with which they are too many, and at
 * the end when they are too few, or their MD5 is not the ETag, if that is an MD5.
 */
export async function* verified(
  chunks: AsyncIterable<Uint8Array>,
  { size, etag }: Pick<ObjectRow, 'size' | 'etag'>,
  differs: () => Error,
): AsyncGenerator<Uint8Array> {
  const md5 = isMd5(etag) ? createHash('md5') : undefined
  let received = 0
  for await (const chunk of chunks) {
    received += chunk.length
    if (received > size) break
    md5?.update(chunk)
    yield chunk
  }
  if (received !== size || (md5 !== undefined && md5.digest('hex') !== etag)) throw differs()
}

/** The parts of the context that reading from deals needs. */
type RetrievalContext = Pick<GatewayCore, 'db' | 'network' | 'log'>

const NO_DEAL = 'No deal holds the current generation of this object.'

/**
 * Calls `use` with the deals that hold this generation, one after the other, until one succeeds. Throws GatewayError
 * RetrievalFailed with the reason of each failure, or the DatabaseUnavailableError that one of them was.
 * @param use throws NetworkError when this deal fails
 * @param dealCid the only deal to try; default any deal
 */
export async function firstThatDoes<T>(
  { db, log }: RetrievalContext,
  generation: string,
  use: (copy: HeldCopy) => Promise<T>,
  dealCid?: string,
): Promise<T> {
  const reasons = new Set<string>()
  let away: DatabaseUnavailableError | undefined
  for (const copy of await db.read.manifest.copiesOf(generation)) {
    if (dealCid !== undefined && copy.dealCid !== dealCid) continue
    try {
      return await use(copy)
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) away = error
      else if (!(error instanceof NetworkError)) throw error
      log.info({ dealCid: copy.dealCid, reason: error.message }, 'Could not retrieve an object from a deal.')
      reasons.add(error.message)
    }
  }
  // Another attempt may succeed.
  if (away !== undefined) throw away
  throw new GatewayError('RetrievalFailed', { value: reasons.size === 0 ? NO_DEAL : [...reasons].join(' ') })
}

/**
 * Reads the bytes of a generation from the deals that hold it; when one fails, the next continues. The caller must
 * compute the CID and compare it with the one of `copiesOf`. Throws GatewayError RetrievalFailed.
 */
export async function* readFromDeals(
  context: RetrievalContext,
  generation: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reasons: string[] = []
  let given = 0
  for (const { dealCid, file } of await context.db.read.manifest.copiesOf(generation)) {
    try {
      let position = 0
      for await (const chunk of context.network.retrieve(dealCid, file, signal)) {
        const fresh = chunk.subarray(Math.max(0, given - position))
        position += chunk.length
        if (fresh.length === 0) continue
        given += fresh.length
        yield fresh
      }
      return
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      reasons.push(error.message)
    }
  }
  throw new GatewayError('RetrievalFailed', { value: reasons.length === 0 ? NO_DEAL : reasons.join(' ') })
}
