import { setMaxListeners } from 'node:events'
import { type Database, statements } from '../../database.js'
import type { DealTerms, MadeDeal, Network } from '../../network/network.js'
import { GatewayError } from '../errors.js'

export interface DealAsk {
  /** Id of the account that orders the deal and pays for it. */
  readonly account: number
  readonly bucketName: string
  /** Empty: the whole bucket. */
  readonly key: Buffer
  readonly terms: DealTerms
  /** Idempotency token of a client of the account. */
  readonly token: string | undefined
}

export interface DealRow extends DealAsk {
  readonly id: number
  /** Id of the bucket that had the name when the deal was requested. */
  readonly bucket: number
  /** Idempotency key that the network knows the deal by. */
  readonly reference: string
  /** Kind of the network that the deal is made in. */
  readonly network: Network['kind']
  readonly files: number
  /** Sum over all files. */
  readonly bytes: number
  /** Undefined while the deal is pending. */
  readonly record: MadeDeal | undefined
  /** True when the deal was not made. */
  readonly dropped: boolean
}

export type CompleteDeal = DealRow & { readonly record: MadeDeal }

type ListedRow = DealRow & {
  readonly asked: string
  /** The offline task that the deal belongs to; null for an online deal. */
  readonly task: number | null
}

const COLUMNS =
  'id, reference, network, bucket, bucket_name AS bucketName, key, token, terms, files, bytes, record, dropped, account FROM deals'

/** The table of deals. Call writing methods inside a transaction. */
export class Deals {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      add: 'INSERT INTO deals (reference, network, bucket, bucket_name, key, token, terms, asked, account, task) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id',
      count: 'UPDATE deals SET files = files + ?, bytes = bytes + ? WHERE id = ?',
      complete: 'UPDATE deals SET record = ?, ends = ? WHERE id = ?',
      drop: 'UPDATE deals SET dropped = 1, token = NULL WHERE id = ?',
      remove: 'DELETE FROM deals WHERE id = ?',
      find: `SELECT ${COLUMNS} WHERE id = ?`,
      findByToken: `SELECT ${COLUMNS} WHERE account = ? AND token = ?`,
      ofAccount:
        "SELECT 1 FROM deals WHERE record IS NOT NULL AND json_extract(record, '$.dealCid') = ? AND account = ?",
      pending: `SELECT ${COLUMNS} WHERE record IS NULL AND task IS NULL ORDER BY id`,
      history: `SELECT ${COLUMNS} WHERE bucket = ? AND key = ? AND id > ? AND record IS NOT NULL ORDER BY id LIMIT ?`,
      ended: 'SELECT id, bucket FROM deals WHERE ends <= ? AND network = ? AND id > ? ORDER BY id LIMIT ?',
      since: `SELECT asked, task, ${COLUMNS} WHERE account = ? AND asked >= ? AND dropped = 0 AND id > ? ORDER BY id LIMIT ?`,
      over: 'UPDATE deals SET ends = NULL WHERE id = ?',
    })
  }

  /**
   * Adds a pending deal of this bucket and returns its id. Throws when the account has a deal with this token.
   * @param asked RFC 3339, nanoseconds
   * @param task the offline task that the deal belongs to; null for an online deal
   */
  add(
    ask: DealAsk,
    bucket: number,
    reference: string,
    network: Network['kind'],
    asked: string,
    task: number | null = null,
  ): number {
    const { bucketName, key, terms, token, account } = ask
    const text = JSON.stringify(terms)
    return this.#sql.add.get(reference, network, bucket, bucketName, key, token ?? null, text, asked, account, task).id
  }

  count(id: number, files: number, bytes: number): void {
    this.#sql.count.run(files, bytes, id)
  }

  complete(id: number, record: MadeDeal): void {
    this.#sql.complete.run(JSON.stringify(record), record.endEpoch, id)
  }

  /** Marks the deal as dropped; its token may be used again. */
  drop(id: number): void {
    this.#sql.drop.run(id)
  }

  remove(id: number): void {
    this.#sql.remove.run(id)
  }

  mustFind(id: number): DealRow {
    const row = this.#sql.find.get(id)
    if (row === undefined) throw new Error(`The deal ${id} is gone.`)
    return toRow(row)
  }

  findByToken(account: number, token: string): DealRow | undefined {
    const row = this.#sql.findByToken.get(account, token)
    return row === undefined ? undefined : toRow(row)
  }

  isOf(account: number, dealCid: string): boolean {
    return this.#sql.ofAccount.get(dealCid, account) !== undefined
  }

  /** Online deals without a record. */
  pending(): DealRow[] {
    return this.#sql.pending.all().map(toRow)
  }

  /** Made deals of exactly this key, or of the whole bucket when it is empty: oldest first, starting behind `after`. */
  history(bucket: number, key: Buffer, after: number, limit: number): CompleteDeal[] {
    return this.#sql.history.all(bucket, key, after, limit).map(toRow) as CompleteDeal[]
  }

  /**
   * Deals that the account has requested since then, made or pending: oldest first, starting behind `after`.
   * @param asked RFC 3339, nanoseconds
   */
  since(account: number, asked: string, after: number, limit: number): ListedRow[] {
    return this.#sql.since.all(account, asked, after, limit).map(toRow) as ListedRow[]
  }

  /** Deals of this network that have ended by this epoch and may still have files, starting behind `after`. */
  ended(network: Network['kind'], epoch: number, after: number, limit: number): EndedDeal[] {
    return this.#sql.ended.all(epoch, network, after, limit) as EndedDeal[]
  }

  over(id: number): void {
    this.#sql.over.run(id)
  }
}

export interface EndedDeal {
  readonly id: number
  readonly bucket: number
}

// biome-ignore lint/suspicious/noExplicitAny: rows are untyped; the columns are those above
function toRow(row: any): DealRow {
  return {
    ...row,
    key: Buffer.from(row.key),
    token: row.token ?? undefined,
    terms: JSON.parse(row.terms),
    record: row.record === null ? undefined : JSON.parse(row.record),
    dropped: row.dropped === 1,
  }
}

/** Tasks that continue after their client has left, until they are done or the gateway stops. */
export class Tasks {
  readonly #controller = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  constructor() {
    // Each task that waits for a slot adds a listener.
    setMaxListeners(0, this.#controller.signal)
  }

  /** Aborted, with GatewayError Stopping, when the gateway stops. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Runs the task and settles as it does. A failure caused by the stop becomes GatewayError Stopping. */
  run<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const running = this.#run(task).finally(() => this.#running.delete(running))
    // The caller may have left by the time the task fails.
    running.catch(() => {})
    this.#running.add(running)
    return running
  }

  /** Aborts the running tasks and resolves when all have settled. Later tasks are rejected. */
  async stop(): Promise<void> {
    this.#controller.abort(new GatewayError('Stopping'))
    await Promise.allSettled(this.#running)
  }

  async #run<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.signal.throwIfAborted()
    try {
      return await task(this.signal)
    } catch (error) {
      if (this.signal.aborted && !(error instanceof GatewayError)) throw new GatewayError('Stopping', {}, error)
      throw error
    }
  }
}
