import { type Bodies, bodyInMemory, mustBeNew, type OpenBody, type StoredBody } from '../../store/bodies.js'
import { type Database, UnknownCommitError } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import type { BodySums } from './body-sums.js'
import { Tally } from './bucket-numbers.js'
import { type BucketRow, type Buckets, bucketLock } from './buckets.js'
import { type DoomedBodies, doom } from './doomed.js'
import type { HoldTable, RetainedBodies } from './holds.js'
import { bodyColumns, type ObjectRow, storedBodyOf } from './object-row.js'
import type { Objects } from './objects.js'
import { findVersion } from './version-reads.js'
import type { VersionRow, Versions } from './versions.js'

interface CopyTables {
  readonly bodySums: BodySums
  readonly holds: HoldTable
  readonly doomed: DoomedBodies
  readonly buckets: Buckets
  readonly objects: Objects
  readonly versions: Versions
}

/**
 * Evicts and restores the bodies of objects whose rows stay. Each change is one transaction and durable once the
 * promise resolves.
 */
export class LocalCopies {
  readonly #db: Database<CopyTables>
  readonly #bodies: Bodies

  constructor(db: Database<CopyTables>, bodies: Bodies) {
    this.#db = db
    this.#bodies = bodies
  }

  /**
   * Returns the object if it has this generation and a local body. Throws GatewayError EvictionRefused or NoSuchKey.
   */
  mustBeHere(bucket: BucketRow, key: Buffer, generation: string): Promise<ObjectRow> {
    return this.#mustBeHere(this.#db.read, bucket, key, generation)
  }

  async #mustBeHere(tables: CopyTables, bucket: BucketRow, key: Buffer, generation: string): Promise<ObjectRow> {
    const row = await findVersion(tables, bucket.id, key, generation)
    if (row === undefined) {
      if ((await tables.objects.find(bucket.id, key)) === undefined) throw new GatewayError('NoSuchKey')
      throw refused('The object has been overwritten and has another generation now. Nothing was removed.')
    }
    if (row.bodyAt === 'network') throw refused('The object has no local copy.')
    if (await tables.holds.covers(bucket.id, generation)) {
      throw refused('A pending deal reads the object: try again when the deal has been made. Nothing was removed.')
    }
    return row
  }

  /**
   * Removes the local body of an object that `mustBeHere` accepts; throws as `mustBeHere` does.
   * @param lastLook called inside the transaction that removes the body; if it throws, the body stays
   */
  async evict(bucket: BucketRow, key: Buffer, generation: string, lastLook: () => void): Promise<void> {
    const work = async (tables: CopyTables) => {
      await tables.buckets.lock(bucket.name, false)
      const row = await this.#mustBeHere(tables, bucket, key, generation)
      lastLook()
      await move(tables, bucket.id, row, undefined)
      if (row.bodyAt === 'index') await tables.objects.removeBody(generation)
      await tables.buckets.count(bucket.id, Tally.ofBytes(-row.size))
      const body = storedBodyOf(row)
      return row.bodyAt === 'file' && (await doom(this.#db, tables, body)) ? body : undefined
    }
    const locks = { locks: [keyLock(bucket, key)], shares: [bucketLock(bucket)] }
    const discarded = await this.#db.transaction(work, locks)
    if (discarded !== undefined) this.#bodies.discard(discarded)
  }

  /**
   * Restores the local body of an object, or replaces one that is damaged. Resolves with false, and discards the body,
   * when the object has been overwritten or removed since, or has another body by now.
   * @param damaged name of the body that is replaced; absent: the object has none
   */
  async bringBack(
    bucket: BucketRow,
    key: Buffer,
    generation: string,
    body: Buffer | StoredBody,
    damaged?: string,
  ): Promise<boolean> {
    const here = Buffer.isBuffer(body) ? undefined : body
    try {
      const work = async (tables: CopyTables) => {
        const { buckets, bodySums } = tables
        mustBeNew(body)
        await buckets.lock(bucket.name, false)
        const row = await findVersion(tables, bucket.id, key, generation)
        if (row === undefined || (row.bodyAt === 'network' ? undefined : row.bodyName) !== damaged)
          return { back: false }
        const old = row.bodyAt === 'file' ? storedBodyOf(row) : undefined
        if (row.bodyAt === 'index') await tables.objects.removeBody(generation)
        await move(tables, bucket.id, row, body)
        if (here?.sums !== undefined) await bodySums.add(generation, here.sums)
        if (row.bodyAt === 'network') await buckets.count(bucket.id, Tally.ofBytes(row.size))
        return { back: true, ...(old && (await doom(this.#db, tables, old)) && { discarded: old }) }
      }
      const locks = { locks: [keyLock(bucket, key)], shares: [bucketLock(bucket)] }
      const { back, discarded } = await this.#db.transaction(work, locks)
      if (discarded !== undefined) this.#bodies.discard(discarded)
      if (here === undefined) return back
      if (back) this.#bodies.committed(here)
      else this.#bodies.discard(here)
      return back
    } catch (error) {
      if (here !== undefined) giveUp(this.#bodies, here, error)
      throw error
    }
  }
}

/** Changes where the body of a version is stored: in the index, in a body of its own, or in deals only. */
async function move(
  { objects, versions }: CopyTables,
  bucket: number,
  row: ObjectRow | VersionRow,
  body: Buffer | StoredBody | undefined,
): Promise<void> {
  const columns = bodyColumns(body)
  if ('id' in row) await versions.move(bucket, row, columns)
  else await objects.move(bucket, row, columns)
  if (Buffer.isBuffer(body)) await objects.putBody(row.generation, body)
}

/** The lock of transactions that change the object of a key: the bucket, which they lock by row, and the key. */
export function keyLock({ id }: BucketRow, key: Buffer): string {
  return `${id} ${key.toString('latin1')}`
}

/** Ends a body after the error of the transaction that was to name it. */
export function giveUp(bodies: Bodies, body: StoredBody, error: unknown): void {
  if (error instanceof UnknownCommitError) bodies.leave(body)
  else bodies.discard(body)
}

export function refused(value: string): GatewayError {
  return new GatewayError('EvictionRefused', { value })
}

interface BodyTables {
  readonly objects: Objects
  readonly retained: RetainedBodies
}

/** Resolves with undefined when the body of this generation is not here. */
export async function openLocalBody(
  { db, bodies }: { readonly db: Database<BodyTables>; readonly bodies: Bodies },
  generation: string,
): Promise<OpenBody | undefined> {
  const { objects, retained } = db.read
  const inline = await objects.inlineBody(generation)
  if (inline !== undefined) return bodyInMemory(inline)
  // In the order in which a body moves from one table to the other.
  const stored = (await objects.storedBody(generation)) ?? (await retained.find(generation))
  return stored && bodies.open(stored)
}
