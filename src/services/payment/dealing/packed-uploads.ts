import { type Database, statements } from '../../database.js'
import type { Content } from '../contents/content-table.js'

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

const COLUMNS = `uploads.id, w_cid AS wCid, cid, file_size AS fileSize, duration, is_free AS isFree
  FROM uploads JOIN contents ON contents.id = uploads.content`

/** Which uploads are packed together, and what becomes of them. Call writing methods inside a transaction. */
export class PackedUploads {
  readonly #sql

  constructor(db: Database) {
    const paid = "status IN ('Paid', 'Free') AND car IS NULL"
    const content = '(SELECT id FROM contents WHERE cid = ?)'
    this.#sql = statements(db, {
      first: `SELECT ${COLUMNS} WHERE ${paid} ORDER BY uploads.id LIMIT 1`,
      like: `SELECT ${COLUMNS} WHERE ${paid} AND duration = ? ORDER BY uploads.id LIMIT ${MAX_UPLOADS}`,
      inCar: `SELECT ${COLUMNS} WHERE car = ? AND status = 'TaskCreated' ORDER BY uploads.id`,
      bytes: 'SELECT coalesce(sum(file_size), 0) AS bytes FROM uploads WHERE car = ?',
      pack: `UPDATE uploads SET car = ?, packed_cid = ?, status = 'TaskCreated' WHERE id = ? AND ${paid}`,
      giveBack: `UPDATE uploads SET status = CASE is_free WHEN 1 THEN 'Refunded' ELSE 'Refundable' END
        WHERE ${paid} AND content = ${content}`,
      lose: "UPDATE contents SET place = 'gone' WHERE cid = ? AND place = 'here' RETURNING cid, car_size AS carSize",
      succeed: "UPDATE uploads SET status = 'Success' WHERE id = ? AND status = 'TaskCreated'",
    })
  }

  /** Uploads that are paid or free and have no CAR yet, for the same time, as many as one CAR takes. */
  next(): UploadToStore[] {
    const first = this.#sql.first.get() as UploadToStore | undefined
    if (first === undefined) return []
    const like = this.#sql.like.all(first.duration) as UploadToStore[]
    let bytes = 0
    return like.filter(({ fileSize }, n) => {
      bytes += fileSize
      return n === 0 || bytes <= MAX_BYTES
    })
  }

  anyPaid(): boolean {
    return this.#sql.first.get() !== undefined
  }

  inCar(car: number): UploadToStore[] {
    return this.#sql.inCar.all(car) as UploadToStore[]
  }

  /** Bytes of all uploads in a CAR, settled or not. */
  bytesOf(car: number): number {
    return this.#sql.bytes.get(car).bytes as number
  }

  /** @param cids those of the uploads in the CAR, by their `w_cid` */
  markPacked(uploads: readonly UploadToStore[], cids: ReadonlyMap<string, string>, car: number): void {
    for (const { id, wCid } of uploads) this.#sql.pack.run(car, cids.get(wCid) ?? null, id)
  }

  /**
   * The content is lost: its uploads that are paid can be refunded, and those that are free are over.
   * @returns what was here of it
   */
  giveBack(cid: string): Pick<Content, 'cid' | 'carSize'>[] {
    this.#sql.giveBack.run(cid)
    return this.#sql.lose.all(cid) as { cid: string; carSize: number }[]
  }

  markSuccess(id: number): void {
    this.#sql.succeed.run(id)
  }
}
