import { type Connection, statements } from '../../store/database.js'
import type { ReleasedContent } from '../contents/content-store.js'
import { CONTENT_COLUMNS } from '../contents/content-table.js'

export interface UploadToStore {
  readonly id: number
  readonly wCid: string
  readonly cid: string
  readonly fileSize: number
  /** Days. */
  readonly duration: number
  /** 1: nothing was paid for it. */
  readonly isFree: 0 | 1
}

/** Most uploads, and most bytes, of one CAR. */
const MAX_UPLOADS = 1000
const MAX_BYTES = 4 * 2 ** 30

const COLUMNS = `uploads.id, w_cid AS "wCid", cid, file_size AS "fileSize", duration, is_free AS "isFree"
  FROM uploads JOIN contents ON contents.id = uploads.content`

/** The uploads that are packed together, and what becomes of them. Call writing methods inside a transaction. */
export class PackedUploads {
  readonly #sql

  constructor(connection: Connection) {
    const paid = "status IN ('Paid', 'Free') AND car IS NULL"
    const content = '(SELECT id FROM contents WHERE cid = ?)'
    this.#sql = statements(connection, {
      first: `SELECT ${COLUMNS} WHERE ${paid} ORDER BY uploads.id LIMIT 1`,
      like: `SELECT ${COLUMNS} WHERE ${paid} AND duration = ? ORDER BY uploads.id LIMIT ${MAX_UPLOADS}`,
      inCar: `SELECT ${COLUMNS} WHERE car = ? AND status = 'TaskCreated' ORDER BY uploads.id`,
      bytes: 'SELECT coalesce(sum(file_size), 0) AS bytes FROM uploads WHERE car = ?',
      pack: `UPDATE uploads SET car = ?, packed_cid = ?, status = 'TaskCreated' WHERE id = ? AND ${paid}`,
      giveBack: `UPDATE uploads SET status = CASE is_free WHEN 1 THEN 'Refunded' ELSE 'Refundable' END
        WHERE ${paid} AND content = ${content}`,
      lose: `UPDATE contents SET place = 'gone' WHERE cid = ? AND place = 'here' RETURNING ${CONTENT_COLUMNS}`,
      succeed: "UPDATE uploads SET status = 'Success' WHERE id = ? AND status = 'TaskCreated'",
    })
  }

  /** Uploads that are paid or free and have no CAR yet, for the same time, as many as one CAR takes. */
  async next(): Promise<UploadToStore[]> {
    const first = await this.#sql.first.get<UploadToStore>()
    if (first === undefined) return []
    const like = await this.#sql.like.all<UploadToStore>(first.duration)
    let bytes = 0
    return like.filter(({ fileSize }, n) => {
      bytes += fileSize
      return n === 0 || bytes <= MAX_BYTES
    })
  }

  async anyPaid(): Promise<boolean> {
    return (await this.#sql.first.get()) !== undefined
  }

  inCar(car: number): Promise<UploadToStore[]> {
    return this.#sql.inCar.all<UploadToStore>(car)
  }

  /** Bytes of all uploads in a CAR, settled or not. */
  async bytesOf(car: number): Promise<number> {
    return (await this.#sql.bytes.get<{ bytes: number }>(car))?.bytes ?? 0
  }

  /** @param cids those of the uploads in the CAR, by their `w_cid` */
  async markPacked(uploads: readonly UploadToStore[], cids: ReadonlyMap<string, string>, car: number): Promise<void> {
    for (const { id, wCid } of uploads) await this.#sql.pack.run(car, cids.get(wCid) ?? null, id)
  }

  /**
   * The content is lost: its uploads that are paid can be refunded, and those that are free are over.
   * @returns what was here of it
   */
  async giveBack(cid: string): Promise<ReleasedContent[]> {
    await this.#sql.giveBack.run(cid)
    return this.#sql.lose.all(cid)
  }

  async markSuccess(id: number): Promise<void> {
    await this.#sql.succeed.run(id)
  }
}
