import { LRUCache } from 'lru-cache'
import { type Database, tableOf } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { isText } from './buckets.js'
import type { WriteOrder } from './fences.js'

interface OrderedUpload {
  readonly bucket: number
  readonly key: Buffer
  order: WriteOrder | undefined
}

interface CallerOrders {
  readonly uploads: Map<string, OrderedUpload>
  /**
   * Orders that arrived before the head of their upload, which comes on another connection. Made when the first does:
   * the cache takes 20 KB. In a shared database, rows have them.
   */
  early?: LRUCache<string, OrderedUpload>
}

/** Most orders kept per caller for uploads whose head has not arrived yet. */
const MAX_EARLY = 1000

interface OrderRow {
  readonly bucket: number
  readonly key: Uint8Array
  readonly fence: number
  /** '' when no object may exist, null without a condition. */
  readonly expected: string | null
}

/** The orders of uploads that arrive at another process. Call its methods inside a transaction. */
export class LateOrderTable extends tableOf({
  put: `
    INSERT INTO late_orders (account, write_id, bucket, key, fence, expected, since) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (account, write_id) DO UPDATE SET bucket = excluded.bucket, key = excluded.key,
      fence = excluded.fence, expected = excluded.expected, since = excluded.since
  `,
  take: 'DELETE FROM late_orders WHERE account = ? AND write_id = ? RETURNING bucket, key, fence, expected',
  bound: `
    DELETE FROM late_orders WHERE account = ?1 AND since < (
      SELECT since FROM late_orders WHERE account = ?1 ORDER BY since DESC LIMIT 1 OFFSET ?2
    )
  `,
  removeOld: 'DELETE FROM late_orders WHERE since < ?',
}) {
  /** Keeps an order, and approximately `MAX_EARLY` of the caller, as long as no upload takes them. */
  async put(caller: number, bucket: number, key: Buffer, order: WriteOrder, now: number): Promise<void> {
    const { fence, writeId, expected } = order
    const condition = expected === undefined ? null : (expected ?? '')
    await this.sql.put.run(caller, writeId, bucket, key, fence, condition, now)
    await this.sql.bound.run(caller, MAX_EARLY)
  }

  async take(caller: number, writeId: string): Promise<OrderedUpload | undefined> {
    const row = await this.sql.take.get<OrderRow>(caller, writeId)
    if (row === undefined) return undefined
    const { bucket, key, fence, expected } = row
    const order = { fence, writeId, ...(expected !== null && { expected: expected === '' ? null : expected }) }
    return { bucket, key: Buffer.from(key), order }
  }

  /** Removes the orders that came before this time, ms since 1970. */
  async removeOld(before: number): Promise<void> {
    await this.sql.removeOld.run(before)
  }
}

export interface LateTables {
  readonly lateOrders: LateOrderTable
}

/**
 * Running uploads that declare their order only before their last bytes, by caller and write id. The order may come to
 * another process than the upload, if several share the database: a row has it then.
 */
export class LateOrders {
  readonly #db: Database<LateTables>
  readonly #callers = new Map<number, CallerOrders>()

  constructor(db: Database<LateTables>) {
    this.#db = db
  }

  /**
   * Call `close` at the end of the upload.
   * @param caller id of the account; 0 for anonymous callers
   */
  open(caller: number, writeId: string, bucket: number, key: Buffer): LateOrder {
    const own = this.#ofCaller(caller)
    const { uploads } = own
    const upload: OrderedUpload = { bucket, key, order: undefined }
    const reported = own.early?.get(writeId)
    own.early?.delete(writeId)
    if (reported !== undefined && isSame(reported, upload)) upload.order = reported.order
    uploads.set(writeId, upload)
    return {
      take: async ({ lateOrders }) => {
        const elsewhere = this.#db.shared ? await lateOrders.take(caller, writeId) : undefined
        if (upload.order !== undefined) return upload.order
        if (elsewhere?.order === undefined || !isSame(elsewhere, upload)) throw new GatewayError('FenceMissing')
        return elsewhere.order
      },
      close: () => {
        if (uploads.get(writeId) === upload) uploads.delete(writeId)
        // A later upload may have opened another entry since.
        if (uploads.size + (own.early?.size ?? 0) === 0 && this.#callers.get(caller) === own)
          this.#callers.delete(caller)
      },
    }
  }

  /** Throws GatewayError WriteIdReused when the id belongs to an upload of another key. */
  async give(caller: number, bucket: number, key: Buffer, order: WriteOrder): Promise<void> {
    const reported = { bucket, key, order }
    if (this.#db.shared && !isText(order.expected ?? '')) throw new GatewayError('InvalidArguments')
    const upload = this.#callers.get(caller)?.uploads.get(order.writeId)
    if (upload !== undefined) {
      if (!isSame(upload, reported)) throw new GatewayError('WriteIdReused')
      upload.order = order
      if (!this.#db.shared) return
    }
    if (this.#db.shared) {
      // The order is kept also when an upload is here: its client may have left it, and have begun it again at another
      // process. Each statement is right by itself.
      const keep = ({ lateOrders }: LateTables) => lateOrders.put(caller, bucket, key, order, Date.now())
      await this.#db.transaction(keep, { locks: [] })
      return
    }
    const own = this.#ofCaller(caller)
    own.early ??= new LRUCache({ max: MAX_EARLY })
    own.early.set(order.writeId, reported)
  }

  #ofCaller(caller: number): CallerOrders {
    const own = this.#callers.get(caller) ?? { uploads: new Map() }
    this.#callers.set(caller, own)
    return own
  }
}

interface LateOrder {
  /** Call it inside the transaction of the upload. Throws GatewayError FenceMissing without a declared order. */
  take(tables: LateTables): Promise<WriteOrder>
  close(): void
}

function isSame(one: OrderedUpload, other: OrderedUpload): boolean {
  return one.bucket === other.bucket && one.key.equals(other.key)
}
