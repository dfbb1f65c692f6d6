import { createHash } from 'node:crypto'
import { fstat } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pLimit from 'p-limit'
import { silentLog } from '../../log.js'
import { type Bodies, BodyError, generationOf, nameAgain, type OpenBody, type StoredBody } from '../../store/bodies.js'
import type { ExclusiveTables } from '../../store/copy/locations.js'
import { type Connection, pages, statements } from '../../store/database.js'
import { FolderBodies } from '../../store/folder-bodies.js'
import { VerifiedBodies } from '../../store/verified-bodies.js'
import type { GatewayTables } from '../index-schema.js'
import { gatewayLimits } from '../limits.js'
import { keptSums } from './body-sums.js'
import { type BodiesOptions, openBodies } from './open-bodies.js'

/** Rows of a page, and bodies that are copied at a time. */
const PAGE = 200
const AT_A_TIME = 8

const PLACES = ['folder', 'store'] as const

type BodyLocation = (typeof PLACES)[number]

/** A body that is still where it was. `bucket` and `key` are those of its object, if it has one. */
interface BodyRow extends StoredBody {
  readonly generation: string
  readonly bucket: string | null
  readonly key: Uint8Array | null
}

const TABLES = ['objects', 'versions', 'retained'] as const

type Table = (typeof TABLES)[number]

/** A file has no mark. */
const IS_AT = { folder: 'IS NULL', store: 'IS NOT NULL' }

const BODY = 'coalesce(body_name, generation) AS name, body_mark AS mark, generation'

/** Where the bodies of all rows are. Call writing methods inside a transaction. */
export class BodyRows {
  readonly #pages
  readonly #moves

  constructor(connection: Connection) {
    const ofObjects = (table: Table, place: BodyLocation) =>
      `SELECT ${BODY}, size, key, (SELECT name FROM buckets WHERE id = bucket) AS bucket FROM ${table}
        WHERE body_at = 0 AND body_mark ${IS_AT[place]} AND generation > ? ORDER BY generation LIMIT ${PAGE}`
    const pageOf = (place: BodyLocation) =>
      statements(connection, {
        objects: ofObjects('objects', place),
        versions: ofObjects('versions', place),
        retained: `SELECT ${BODY}, bytes AS size, NULL AS bucket, NULL AS key FROM retained
          WHERE body_at = 0 AND body_mark ${IS_AT[place]} AND generation > ? ORDER BY generation LIMIT ${PAGE}`,
      })
    const move = (table: Table) =>
      `UPDATE ${table} SET body_name = ?, body_mark = ? WHERE generation = ? AND body_at = 0
        AND coalesce(body_name, generation) = ?`
    this.#pages = { folder: pageOf('folder'), store: pageOf('store') }
    this.#moves = statements(connection, {
      ...{ objects: move('objects'), versions: move('versions'), retained: move('retained') },
    })
  }

  page(table: Table, place: BodyLocation, after: string): Promise<BodyRow[]> {
    return this.#pages[place][table].all<BodyRow>(after)
  }

  /** Resolves with false when the row names another body, or is gone. */
  async move(table: Table, { generation, name }: BodyRow, to: StoredBody): Promise<boolean> {
    return (await this.#moves[table].run(to.name, to.mark, generation, name)) === 1
  }
}

export interface MoveProgress {
  readonly bodies: number
  readonly bytes: number
}

export interface MovedBodies extends MoveProgress {
  /** Bodies that are lost or damaged where they were. Their rows are as before. */
  readonly damaged: readonly DamagedBody[]
}

interface DamagedBody {
  /** Undefined for a body that only a deal still needs. */
  readonly bucket: string | undefined
  readonly key: string | undefined
  readonly name: string
  readonly reason: string
}

/** A body cannot be read where it is. */
class Damage extends Error {}

/**
 * Copies the bodies of all rows from the folder of a gateway to its store or back, reads each of them again there, and
 * then changes its row. Rows say what remains to be done: a move that was interrupted goes on where it has stopped.
 * The gateway removes what it has left at its next sweeps.
 */
export async function moveBodies(
  folder: string,
  { db, requireHeld }: ExclusiveTables<GatewayTables & { readonly bodyRows: BodyRows }>,
  store: BodiesOptions,
  to: BodyLocation,
  onProgress: (progress: MoveProgress) => void,
): Promise<MovedBodies> {
  const both = await openBodies(folder, db, store, gatewayLimits, silentLog)
  const folderAlone = () =>
    new VerifiedBodies(new FolderBodies(join(folder, 'objects'), silentLog), keptSums(db), silentLog)
  const target = to === 'store' ? both : folderAlone()
  const from = to === 'store' ? 'folder' : 'store'
  const slots = pLimit(AT_A_TIME)
  const damaged: DamagedBody[] = []
  let [bodies, bytes] = [0, 0]
  const moveOne = async (table: Table, row: BodyRow): Promise<void> => {
    let moved: StoredBody
    try {
      moved = await copyBody(row, both, target)
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      damaged.push(damageOf(row, error))
      return
    }
    // A body that is not named is swept, and a row must not name it then.
    await requireHeld()
    const isMoved = await db.transaction(async ({ bodyRows, bodySums }) => {
      if (!(await bodyRows.move(table, row, moved))) return false
      await bodySums.add(row.generation, moved.sums)
      return true
    })
    if (!isMoved) throw new Error(`The row of the body ${row.name} has changed meanwhile.`)
    target.committed(moved)
    bodies++
    bytes += row.size
    onProgress({ bodies, bytes })
  }
  try {
    for (const table of TABLES) {
      for await (const page of pages('generation', '', (after) => db.read.bodyRows.page(table, from, after))) {
        let failure: { readonly error: unknown } | undefined
        const moveUnlessFailed = async (row: BodyRow): Promise<void> => {
          if (failure !== undefined) return
          await moveOne(table, row).catch((error: unknown) => {
            failure ??= { error }
          })
        }
        await Promise.all(page.map((row) => slots(moveUnlessFailed, row)))
        if (failure !== undefined) throw failure.error
      }
    }
    return { bodies, bytes, damaged }
  } finally {
    await Promise.all([both.close(), target.close()])
  }
}

/** Resolves when the body is durable under a new name, and was read there. Throws Damage, and what the places do. */
async function copyBody(row: BodyRow, from: Bodies, to: Bodies): Promise<StoredBody> {
  const body = await to.create(nameAgain(generationOf(row.name)), row.size)
  let copied: StoredBody
  let hash: string
  try {
    const digest = createHash('sha256')
    for await (const chunk of readable(row, from)) {
      digest.update(chunk)
      if (!body.write(chunk)) await body.ready()
    }
    hash = digest.digest('hex')
    copied = await body.finish()
  } catch (error) {
    await body.abandon()
    throw error
  }
  try {
    const digest = createHash('sha256')
    for await (const chunk of chunksOf(copied, to)) digest.update(chunk)
    if (digest.digest('hex') !== hash) throw new BodyError('changed', `The copy of the body ${row.name} differs.`)
    return copied
  } catch (error) {
    to.discard(copied)
    throw error
  }
}

/** The chunks of a body that is to be copied. Throws Damage unless it is whole, or may be later. */
async function* readable(body: StoredBody, from: Bodies): AsyncGenerator<Buffer> {
  const chunks = chunksOf(body, from)[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await chunks.next().catch((error: Error) => {
        if (error instanceof BodyError && (error.kind === 'unavailable' || error.kind === 'refused')) throw error
        throw new Damage(error.message, { cause: error })
      })
      if (next.done) return
      yield next.value
    }
  } finally {
    await chunks.return?.(undefined)
  }
}

async function* chunksOf(body: StoredBody, bodies: Bodies): AsyncGenerator<Buffer, void, undefined> {
  const open = await bodies.open(body)
  if (open === undefined) throw new BodyError('lost', `The body ${body.name} is lost.`)
  try {
    await requireSize(body, open)
    yield* await open.stream(0, body.size - 1)
  } finally {
    await open.close()
  }
}

/** Throws BodyError for a file of another length. */
export async function requireSize({ name, size }: Pick<StoredBody, 'name' | 'size'>, { fd }: OpenBody): Promise<void> {
  if (fd === undefined) return
  const { size: found } = await promisify(fstat)(fd)
  if (found !== size) throw new BodyError('changed', `The file ${name} has ${found} bytes, and its object ${size}.`)
}

function damageOf({ bucket, key, name }: BodyRow, { message: reason }: Damage): DamagedBody {
  return {
    bucket: bucket ?? undefined,
    key: key === null ? undefined : Buffer.from(key).toString(),
    name,
    reason,
  }
}
