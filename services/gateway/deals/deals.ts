import { setMaxListeners } from 'node:events'
import { PeriodicTask } from '../../../common/time.js'
import type { DealTerms, MadeDeal, Network } from '../../network/network.js'
import { type Row, tableOf } from '../../store/database.js'
import { isOver } from '../../store/runs.js'
import { GatewayError } from '../errors.js'
import { isText } from '../store/buckets.js'

export interface DealAsk {
  /** Id of the account that orders the deal and pays for it. */
  readonly account: number
  readonly bucketName: string
  /** Empty: the whole bucket. */
  readonly key: Buffer
  /** Generation of the version of the object; absent: the current one. */
  readonly generation?: string | undefined
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
  /** Run of the process that makes the deal; null for earlier versions. */
  readonly run: string | null
  /** What that process has said last, in JSON. */
  readonly progress: string | null
}

/** A deal that is added. */
interface NewDeal extends Pick<DealRow, 'bucket' | 'reference' | 'network'> {
  /** RFC 3339, nanoseconds. */
  readonly asked: string
  /** The offline task that the deal belongs to; null for an online deal. */
  readonly task: number | null
  readonly run: string | null
}

export type CompleteDeal = DealRow & { readonly record: MadeDeal }

type ListedRow = DealRow & Pick<NewDeal, 'asked' | 'task'>

/** Why a deal is not made by a process that was stopped for so long that another one had to find out. */
export const GIVEN_UP = 'Another process of the gateway has given up the deal.'

const COLUMNS =
  'id, reference, network, bucket, bucket_name AS "bucketName", key, token, terms, files, bytes, record, dropped, account, run, progress FROM deals'

/** The table of deals. Call writing methods inside a transaction. */
export class Deals extends tableOf((connection) => ({
  add: 'INSERT INTO deals (reference, network, bucket, bucket_name, key, token, terms, asked, account, task, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id',
  count: 'UPDATE deals SET files = files + ?, bytes = bytes + ? WHERE id = ? AND dropped = 0',
  complete: 'UPDATE deals SET record = ?, ends = ?, progress = NULL WHERE id = ?',
  setProgress: 'UPDATE deals SET progress = ? WHERE id = ? AND record IS NULL',
  drop: 'UPDATE deals SET dropped = 1, token = NULL WHERE id = ? AND (record IS NULL OR task IS NOT NULL)',
  remove: 'DELETE FROM deals WHERE id = ?',
  find: `SELECT ${COLUMNS} WHERE id = ?`,
  findByReference: `SELECT ${COLUMNS} WHERE reference = ?`,
  findByToken: `SELECT ${COLUMNS} WHERE account = ? AND token = ?`,
  ofAccount: "SELECT 1 FROM deals WHERE record IS NOT NULL AND json_extract(record, '$.dealCid') = ? AND account = ?",
  pending: `SELECT ${COLUMNS} WHERE record IS NULL AND task IS NULL ORDER BY id`,
  left: `SELECT ${COLUMNS} WHERE record IS NULL AND task IS NULL AND ${isOver(connection, 'run')} ORDER BY id`,
  history: `SELECT ${COLUMNS} WHERE bucket = ? AND key = ? AND id > ? AND record IS NOT NULL ORDER BY id LIMIT ?`,
  ended: 'SELECT id, bucket FROM deals WHERE ends <= ? AND network = ? AND id > ? ORDER BY id LIMIT ?',
  since: `SELECT asked, task, ${COLUMNS} WHERE account = ? AND asked >= ? AND dropped = 0 AND id > ? ORDER BY id LIMIT ?`,
  over: 'UPDATE deals SET ends = NULL WHERE id = ?',
})) {
  /** Adds a pending deal and returns its id. Throws when the account has a deal with this token. */
  async add(ask: DealAsk, { reference, network, bucket, asked, task, run }: NewDeal): Promise<number> {
    const { bucketName, key, terms, token, account } = ask
    const text = JSON.stringify(terms)
    const values = [reference, network, bucket, bucketName, key, token ?? null, text, asked, account, task, run]
    return ((await this.sql.add.get<{ id: number }>(...values)) as { id: number }).id
  }

  /** Adds files. Throws when another process has given up the deal. */
  async count(id: number, files: number, bytes: number): Promise<void> {
    if ((await this.sql.count.run(files, bytes, id)) === 0) throw new GatewayError('DealFailed', { value: GIVEN_UP })
  }

  async setProgress(id: number, progress: string): Promise<void> {
    await this.sql.setProgress.run(progress, id)
  }

  async complete(id: number, record: MadeDeal): Promise<void> {
    await this.sql.complete.run(JSON.stringify(record), record.endEpoch, id)
  }

  /**
   * Marks a pending deal, or one of an offline task, as dropped; its token may be used again. Resolves with false when
   * there is none.
   */
  async drop(id: number): Promise<boolean> {
    return (await this.sql.drop.run(id)) > 0
  }

  async remove(id: number): Promise<void> {
    await this.sql.remove.run(id)
  }

  async mustFind(id: number): Promise<DealRow> {
    const row = await this.sql.find.get(id)
    if (row === undefined) throw new Error(`The deal ${id} is gone.`)
    return toRow(row)
  }

  async findByReference(reference: string): Promise<DealRow | undefined> {
    const row = await this.sql.findByReference.get(reference)
    return row === undefined ? undefined : toRow(row)
  }

  async findByToken(account: number, token: string): Promise<DealRow | undefined> {
    const row = isText(token) ? await this.sql.findByToken.get(account, token) : undefined
    return row === undefined ? undefined : toRow(row)
  }

  async isOf(account: number, dealCid: string): Promise<boolean> {
    return isText(dealCid) && (await this.sql.ofAccount.get(dealCid, account)) !== undefined
  }

  /** Online deals without a record. */
  async pending(): Promise<DealRow[]> {
    return (await this.sql.pending.all()).map(toRow)
  }

  /** Pending deals whose process does not run any more, as others see it. */
  async left(run: string): Promise<DealRow[]> {
    return (await this.sql.left.all(run)).map(toRow)
  }

  /** Made deals of exactly this key, or of the whole bucket when it is empty: oldest first, starting behind `after`. */
  async history(bucket: number, key: Buffer, after: number, limit: number): Promise<CompleteDeal[]> {
    return (await this.sql.history.all(bucket, key, after, limit)).map(toRow) as CompleteDeal[]
  }

  /**
   * Deals that the account has requested since then, made or pending: oldest first, starting behind `after`.
   * @param asked RFC 3339, nanoseconds
   */
  async since(account: number, asked: string, after: number, limit: number): Promise<ListedRow[]> {
    return (await this.sql.since.all(account, asked, after, limit)).map(toRow) as ListedRow[]
  }

  /** Deals of this network that have ended by this epoch and may still have files, starting behind `after`. */
  ended(network: Network['kind'], epoch: number, after: number, limit: number): Promise<EndedDeal[]> {
    return this.sql.ended.all<EndedDeal>(epoch, network, after, limit)
  }

  async over(id: number): Promise<void> {
    await this.sql.over.run(id)
  }
}

export interface EndedDeal {
  readonly id: number
  readonly bucket: number
}

interface StoredRow extends Omit<DealRow, 'token' | 'terms' | 'record' | 'dropped'> {
  readonly token: string | null
  readonly terms: string
  readonly record: string | null
  readonly dropped: number
}

function toRow(row: Row): DealRow {
  const { key, token, terms, record, dropped, ...rest } = row as unknown as StoredRow
  return {
    ...rest,
    key: Buffer.from(key),
    token: token ?? undefined,
    terms: JSON.parse(terms),
    record: record === null ? undefined : JSON.parse(record),
    dropped: dropped === 1,
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

  /**
   * Runs the task now and every `intervalMs`, as long as the gateway runs.
   * @param failed gets the reason when one fails; later ones begin all the same
   */
  every(intervalMs: number, task: (signal: AbortSignal) => Promise<unknown>, failed: (error: unknown) => void): void {
    const periodic = new PeriodicTask(
      () => this.run(task),
      (error) => {
        if (!this.signal.aborted) failed(error)
      },
    )
    periodic.start(intervalMs)
    this.signal.addEventListener('abort', () => periodic.stopTimer(), { once: true })
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
