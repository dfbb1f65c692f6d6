import type { ServicesLog } from '../../log.js'
import type { Bodies, StoredBody } from '../../store/bodies.js'
import { type Database, listed, tableOf, together } from '../../store/database.js'
import { isOver, type Run } from '../../store/runs.js'
import { GIVEN_UP } from '../deals/deals.js'
import { GatewayError } from '../errors.js'
import type { BodySums } from './body-sums.js'
import { bucketLock } from './buckets.js'
import { type DoomedBodies, doom } from './doomed.js'
import { type FreedBody, storedBodyOf } from './object-row.js'
import type { Objects } from './objects.js'

const RELEASE_BATCH = 500

const BODY = 'coalesce(body_name, generation)'

/** True for a body of the bucket ?1 that a hold covers, by the generation in a column. */
const covered = (generation: string): string => `EXISTS (
  SELECT 1 FROM holds AS h WHERE h.bucket = ?1 AND (
    h.deal = 0 OR EXISTS (SELECT 1 FROM deal_files AS f WHERE f.generation = ${generation} AND f.deal = h.deal)
  )
)`

/**
 * A process that counts as ended may go on with its deal until another one has dropped that, by the reference of the
 * deal or the UUID of the task, which its hold is named after.
 */
const unlessPending = {
  sqlite: '',
  postgres: `
    AND NOT EXISTS (SELECT 1 FROM deals AS d WHERE d.reference = hold AND d.record IS NULL AND d.dropped = 0)
    AND NOT EXISTS (SELECT 1 FROM offline_tasks AS t WHERE t.uuid = hold AND t.state = 'packing')
  `,
}

/** The table of holds. Call writing methods inside a transaction. */
export class HoldTable extends tableOf((connection) => ({
  add: 'INSERT INTO holds (hold, deal, bucket, run) VALUES (?, ?, ?, ?)',
  narrow: 'DELETE FROM holds WHERE hold = ? AND deal = 0 RETURNING bucket, run',
  remove: 'DELETE FROM holds WHERE hold = ?',
  covers: `SELECT 1 AS found WHERE ${covered('?2')}`,
  removeOver: `DELETE FROM holds WHERE ${isOver(connection, 'run')}${unlessPending[connection.engine]} RETURNING bucket`,
})) {
  /** Adds a hold of the files of a deal (0: of all bodies of the bucket). */
  async add(hold: string, bucket: number, deal: number, run: string): Promise<void> {
    await this.sql.add.run(hold, deal, bucket, run)
  }

  /** From now on, the hold covers the files of these deals alone. Throws when it has been removed. */
  async narrow(hold: string, deals: readonly number[]): Promise<void> {
    const row = await this.sql.narrow.get<{ bucket: number; run: string }>(hold)
    if (row === undefined) throw new GatewayError('DealFailed', { value: GIVEN_UP })
    for (const deal of deals) await this.sql.add.run(hold, deal, row.bucket, row.run)
  }

  async remove(hold: string): Promise<void> {
    await this.sql.remove.run(hold)
  }

  async covers(bucket: number, generation: string): Promise<boolean> {
    return (await this.sql.covers.get(bucket, generation)) !== undefined
  }

  /** Removes the holds of processes that have ended, unless their deals are pending, and returns their buckets. */
  async removeOver(run: string): Promise<number[]> {
    return (await this.sql.removeOver.all<{ bucket: number }>(run)).map(({ bucket }) => bucket)
  }
}

type RetainedRow = Omit<FreedBody, 'bodyAt'> & { readonly bodyAt: number }

/** The table of bodies without an object that a pending deal still reads. Call writing methods inside a transaction. */
export class RetainedBodies extends tableOf((connection) => ({
  add: 'INSERT INTO retained (generation, bucket, body_at, account, bytes, body_name, body_mark) VALUES (?1, ?2, ?3, (SELECT owner FROM buckets WHERE id = ?2), ?4, ?5, ?6)',
  find: `SELECT ${BODY} AS name, bytes AS size, body_mark AS mark FROM retained WHERE generation = ? AND body_at = 0`,
  among: `SELECT ${BODY} AS name FROM retained WHERE generation IN ${listed(connection)} AND body_at = 0`,
  unheld:
    'SELECT DISTINCT bucket FROM retained AS r WHERE NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.bucket = r.bucket)',
  takeUnheld: `
    DELETE FROM retained WHERE generation IN (
      SELECT r.generation FROM retained AS r WHERE r.bucket = ?1 AND NOT ${covered('r.generation')} LIMIT ?2
    )
    RETURNING generation, body_at AS "bodyAt", coalesce(body_name, generation) AS "bodyName", bytes AS size,
      body_mark AS "bodyMark"
  `,
})) {
  async add(bucket: number, { generation, bodyAt, size, bodyName, bodyMark }: FreedBody): Promise<void> {
    await this.sql.add.run(generation, bucket, bodyAt === 'index' ? 1 : 0, size, bodyName, bodyMark)
  }

  /** The body of an overwritten or removed object that is kept, unless it is in the index. */
  find(generation: string): Promise<StoredBody | undefined> {
    return this.sql.find.get<StoredBody>(generation)
  }

  /** Buckets in which nothing is retained for a hold that goes on. */
  async unheldBuckets(): Promise<number[]> {
    return (await this.sql.unheld.all<{ bucket: number }>()).map(({ bucket }) => bucket)
  }

  /** Removes and returns at most `limit` rows of a bucket that no hold covers. */
  takeUnheld(bucket: number, limit: number): Promise<RetainedRow[]> {
    return this.sql.takeUnheld.all<RetainedRow>(bucket, limit)
  }

  /** Names of the bodies that it has of these generations. */
  async bodiesOf(generations: readonly string[]): Promise<string[]> {
    return (await this.sql.among.all<{ name: string }>(JSON.stringify(generations))).map(({ name }) => name)
  }
}

interface HeldTables {
  readonly holds: HoldTable
}

interface LetGoTables extends HeldTables {
  readonly bodySums: BodySums
  readonly doomed: DoomedBodies
  readonly objects: Objects
  readonly retained: RetainedBodies
}

/**
 * Bodies that a deal in the making reads. They are kept until it is made, even when their objects are overwritten or
 * removed meanwhile: such a body is then `retained`. A hold ends with the run of its process at the latest.
 *
 * Transactions that let bodies go share the lock of the bucket, and those that begin or end a hold have it for
 * themselves: what begins a hold sees in the database what had been let go before, and nothing is retained for a hold
 * that has ended.
 */
export class Holds {
  readonly #db: Database<LetGoTables>
  readonly #bodies: Bodies
  readonly #run: Run
  readonly #log: ServicesLog
  /** Holds that could not be ended yet, with their buckets. */
  readonly #ended = new Map<string, number>()

  constructor(db: Database<LetGoTables>, bodies: Bodies, run: Run, log: ServicesLog) {
    this.#db = db
    this.#bodies = bodies
    this.#run = run
    this.#log = log
  }

  /** Ends the holds of processes that have ended, and removes what was retained for them. */
  async recover(signal?: AbortSignal): Promise<void> {
    const freed = await this.#db.transaction(({ holds }) => holds.removeOver(this.#run.name))
    // A search of a bucket keeps its writes waiting: none while a deal goes on there and nothing else has ended.
    const buckets = new Set([...freed, ...(await this.#db.read.retained.unheldBuckets())])
    for (const bucket of buckets) await this.#letGoUnheld(bucket, signal)
  }

  /**
   * Adds a hold of the files of a deal, or of all bodies of the bucket, inside a transaction that has the lock of the
   * bucket. Once it is committed, what the database shows of the bucket then has all of these bodies, and keeps them.
   * Call `release` in the end, also when the transaction has failed: it may be committed.
   * @param hold its name: the reference of the online deal, or the UUID of the task, that it is for
   */
  add({ holds }: HeldTables, hold: string, bucket: number, deal = 0): Promise<void> {
    return holds.add(hold, bucket, deal, this.#run.name)
  }

  /** From now on, the hold covers the files of these deals alone. */
  async narrow(hold: string, deals: readonly number[]): Promise<void> {
    await this.#db.transaction(({ holds }) => holds.narrow(hold, deals))
  }

  /**
   * Decides, inside the transaction that removes the row of a body, whether the body is removed too. Resolves with true
   * when it is: the caller then discards it from `Bodies` once the transaction is committed.
   * @param held as the transaction has found the bucket, with whose lock it runs
   */
  async letGo(tables: LetGoTables, bucket: number, freed: FreedBody, held: boolean): Promise<boolean> {
    const { generation, bodyAt } = freed
    if (bodyAt === 'network') {
      await tables.bodySums.letGo(generation)
      return false
    }
    if (held && (await tables.holds.covers(bucket, generation))) {
      await tables.retained.add(bucket, freed)
      return false
    }
    if (bodyAt === 'index') await tables.objects.removeBody(generation)
    if (bodyAt !== 'file') return false
    const [isDoomed] = await together([doom(this.#db, tables, storedBodyOf(freed)), tables.bodySums.letGo(generation)])
    return isDoomed
  }

  /** Ends the hold and removes the bodies that were retained for it alone; what fails now, `releaseAgain` does. */
  async release(bucket: number, hold: string): Promise<void> {
    try {
      await this.#release(bucket, hold)
    } catch (err) {
      this.#ended.set(hold, bucket)
      this.#log.warn({ err }, 'Could not release the bodies that a deal held yet; trying again.')
    }
  }

  /** Ends the holds that could not be ended before. */
  async releaseAgain(signal?: AbortSignal): Promise<void> {
    for (const [hold, bucket] of this.#ended) {
      signal?.throwIfAborted()
      await this.#release(bucket, hold)
      this.#ended.delete(hold)
    }
  }

  async #release(bucket: number, hold: string): Promise<void> {
    await this.#db.transaction(({ holds }) => holds.remove(hold), { locks: [bucketLock({ id: bucket })] })
    await this.#letGoUnheld(bucket)
  }

  /** Removes the retained bodies of this bucket that no hold needs. */
  async #letGoUnheld(bucket: number, signal?: AbortSignal): Promise<void> {
    const release = async (tables: LetGoTables) => {
      const rows = await tables.retained.takeUnheld(bucket, RELEASE_BATCH)
      const discarded: StoredBody[] = []
      for (const row of rows) {
        const body = storedBodyOf(row)
        if (row.bodyAt === 1) await tables.objects.removeBody(row.generation)
        else {
          await tables.bodySums.letGo(row.generation)
          if (await doom(this.#db, tables, body)) discarded.push(body)
        }
      }
      return { count: rows.length, discarded }
    }
    let released = RELEASE_BATCH
    while (released === RELEASE_BATCH) {
      signal?.throwIfAborted()
      // Each statement sees what is committed. The lock: what is retained just now may be for a hold that has ended.
      const { count, discarded } = await this.#db.transaction(release, { locks: [bucketLock({ id: bucket })] })
      for (const body of discarded) this.#bodies.discard(body)
      released = count
    }
  }
}
