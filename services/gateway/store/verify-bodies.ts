import { createHash } from 'node:crypto'
import pLimit from 'p-limit'
import { type Bodies, BodyError } from '../../store/bodies.js'
import { haveSameSums, type SumRows, SumWriter, sumOf } from '../../store/chunk-sums.js'
import type { Database } from '../../store/database.js'
import type { GatewayTables } from '../index-schema.js'
import type { NamedBodies, NamedBody } from './body-rows.js'
import { keptSums, mustHaveSum } from './body-sums.js'
import type { Miscounted } from './bucket-numbers.js'
import { bucketLock } from './buckets.js'
import { requireSize } from './move-bodies.js'
import { isMd5 } from './object-row.js'
import type { BodyReader } from './open-bodies.js'

const AT_A_TIME = 4

export interface VerifyProgress {
  readonly bodies: number
  readonly bytes: number
}

export interface Verification extends VerifyProgress {
  /** Bodies of an earlier version without checksums and without an MD5: there is nothing to compare them with. */
  readonly uncompared: number
  /** Bodies without checksums until now; 0 when nothing may be changed. */
  readonly added: number
  /** Bodies for which the store has another mark than it had; 0 when nothing may be changed. */
  readonly renewed: number
  readonly damaged: readonly DamagedObject[]
  /** Buckets whose numbers were not those of their rows; they are counted anew where something may be changed. */
  readonly miscounted: readonly Miscounted[]
}

interface DamagedObject {
  /** Undefined for a body that only a deal in the making still reads. */
  readonly bucket: string | undefined
  readonly key: string | undefined
  /** Id of a version that is not current. */
  readonly version: string | undefined
  readonly name: string
  readonly reason: string
  /** CIDs of the deals that have its bytes. */
  readonly deals: readonly string[]
}

type VerifiedTables = GatewayTables & { readonly namedBodies: NamedBodies }

/**
 * Reads all bodies of an index and compares them with their checksums, or those of an earlier version with their MD5 or
 * the CRC-32 in their mark. Throws BodyError when the store cannot be used.
 * @param db changed: gets checksums that it lacks, and marks that are no longer those of the store; default: nothing is
 */
export async function verifyBodies(
  read: VerifiedTables,
  { bodies, markOf }: BodyReader,
  db: Database<VerifiedTables> | undefined,
  onProgress: (progress: VerifyProgress) => void,
): Promise<Verification> {
  const slots = pLimit(AT_A_TIME)
  const damaged: DamagedObject[] = []
  const counts = { bodies: 0, bytes: 0, uncompared: 0, added: 0, renewed: 0 }
  const keep = async (body: NamedBody, found: WholeBody): Promise<void> => {
    if (db === undefined) return
    if (!found.had) {
      if (body.inIndex) await db.transaction(({ namedBodies }) => namedBodies.setCrc(body.generation, found.crc))
      else await keptSums(db).adopt(body, found.sums)
      counts.added++
    }
    const mark = await markOf(body)
    if (mark === undefined || mark === body.mark) return
    await db.transaction(({ namedBodies }) => namedBodies.mark(body, mark))
    counts.renewed++
  }
  const verifyOne = async (body: NamedBody): Promise<void> => {
    try {
      const found = await wholeBody(read, bodies, body)
      if (!found.had && !found.compared) counts.uncompared++
      await keep(body, found)
    } catch (error) {
      if (!(error instanceof BodyError) || error.kind === 'unavailable' || error.kind === 'refused') throw error
      // An overwrite or a removal may have come between.
      if (!(await isStillNamed(read, body))) return
      damaged.push(await described(read, body, error))
    }
    counts.bodies++
    counts.bytes += body.size
    onProgress(counts)
  }
  for await (const page of read.namedBodies.all()) {
    const ended = await Promise.allSettled(page.map((body) => slots(verifyOne, body)))
    for (const one of ended) if (one.status === 'rejected') throw one.reason
  }
  // A process of an earlier version knows nothing of them.
  if (db !== undefined) await db.transaction(({ bodySums }) => bodySums.letGoUnnamed())
  return { ...counts, damaged, miscounted: await verifyNumbers(read, db) }
}

/** Compares the numbers of all buckets with a count of their rows, and sets those that differ if `db` is given. */
async function verifyNumbers(
  { buckets }: VerifiedTables,
  db: Database<VerifiedTables> | undefined,
): Promise<readonly Miscounted[]> {
  const found = await buckets.miscounted()
  for (const { id, name } of db === undefined ? [] : found)
    await db?.transaction(
      async (tables) => {
        // One of the same name may be in its place by now.
        if ((await tables.buckets.lock(name, true))?.id === id) await tables.buckets.recount(id)
      },
      { locks: [bucketLock({ id })] },
    )
  return found
}

interface WholeBody {
  readonly sums: SumRows
  /** CRC-32 of a body in the index. */
  readonly crc: number
  /** It had checksums. */
  readonly had: boolean
  /** There was something to compare it with. */
  readonly compared: boolean
}

type BodyTables = Pick<GatewayTables, 'bodySums'>
type BodyOfRow = Pick<NamedBody, 'name' | 'size' | 'mark' | 'generation' | 'etag' | 'inIndex' | 'body' | 'crc'>

/**
 * Reads a body to its end. Throws BodyError when it is lost or damaged.
 * @param bodies which compare chunks with their checksums
 */
export async function wholeBody({ bodySums }: BodyTables, bodies: Bodies, body: BodyOfRow): Promise<WholeBody> {
  const { generation, size, inIndex, mark } = body
  const md5 = body.etag !== null && isMd5(body.etag) ? body.etag : undefined
  const kept = inIndex ? [] : await bodySums.rows(generation)
  const had = inIndex ? body.crc !== null : kept.length > 0 || size === 0
  const digest = had || md5 === undefined ? undefined : createHash('md5')
  const sums = new SumWriter(size)
  let crc = 0
  let read = 0
  for await (const chunk of chunksOf(bodies, body)) {
    read += chunk.length
    sums.update(chunk)
    digest?.update(chunk)
    if (inIndex) crc = sumOf(chunk, crc)
  }
  if (read !== size) throw new BodyError('changed', `The body ${body.name} has ${read} bytes, and its object ${size}.`)
  const rows = sums.finish()
  const differs = (kept.length > 0 && !haveSameSums(kept, rows)) || (digest && digest.digest('hex') !== md5)
  if (differs) throw new BodyError('changed', `The body ${body.name} has other bytes than were stored.`)
  return { sums: rows, crc, had, compared: had || digest !== undefined || mark !== null }
}

async function* chunksOf(bodies: Bodies, body: BodyOfRow): AsyncGenerator<Uint8Array> {
  const lost = () => new BodyError('lost', `The body ${body.name} is lost.`)
  if (body.inIndex) {
    if (body.body === null) throw lost()
    mustHaveSum(body.generation, body.body, body.crc)
    yield body.body
    return
  }
  const { name, size, mark } = body
  const open = await bodies.open({ name, size, mark })
  if (open === undefined) throw lost()
  try {
    await requireSize(body, open)
    yield* await open.stream(0, size - 1)
  } finally {
    await open.close()
  }
}

/** False for a body whose row names another one by now, or is gone. */
async function isStillNamed({ objects, retained }: GatewayTables, body: NamedBody): Promise<boolean> {
  const { generation, inIndex, name } = body
  // Reading it again says whether it is there.
  if (inIndex) {
    const found = await objects.inlineBody(generation).catch((error: unknown) => {
      if (error instanceof BodyError) return Buffer.alloc(0)
      throw error
    })
    return found !== undefined || body.body === null
  }
  const named = (await objects.storedBody(generation)) ?? (await retained.find(generation))
  return named?.name === name
}

async function described({ manifest }: GatewayTables, body: NamedBody, error: BodyError): Promise<DamagedObject> {
  const copies = await manifest.copiesOf(body.generation)
  return {
    bucket: body.bucket ?? undefined,
    key: body.key === null ? undefined : Buffer.from(body.key).toString(),
    version: body.table === 'versions' ? (body.version ?? undefined) : undefined,
    name: body.name,
    reason: error.message,
    deals: copies.map(({ dealCid }) => dealCid),
  }
}
