import type { Database } from '../../database.js'

/** What an upload is stored with. */
export interface NewUpload {
  /** A UUID and the CID of the content. */
  readonly wCid: string
  /** Address of its wallet, in lower case. */
  readonly wallet: string
  /** Number of its content. */
  readonly content: number
  readonly fileName: string
  /** Bytes. */
  readonly fileSize: number
  /** 0 by a user, 1 by an NFT. */
  readonly fileType: 0 | 1
  /** Days. */
  readonly duration: number
  /** Least payment, millionths of a stable coin. */
  readonly price: number
  /** Unix seconds. */
  readonly created: number
}

/**
 * `Paid` once a payment is locked, `TaskCreated` once it is in a CAR, `Success` once the deal is active and paid;
 * `Refundable` when it has no deal in time, `Refunded` when the payment went back.
 */
export type UploadStatus = 'Pending' | 'Paid' | 'TaskCreated' | 'Success' | 'Refundable' | 'Refunded'

export interface Upload extends NewUpload {
  readonly id: number
  readonly status: UploadStatus
  /** CID of the content. */
  readonly cid: string
  /** Number of its CAR. */
  readonly car: number | null
}

/** Every status in between is shown as `Processing`. */
export function shownStatus(status: UploadStatus): string {
  return status === 'Paid' || status === 'TaskCreated' ? 'Processing' : status
}

export const UPLOAD_COLUMNS = `uploads.id, w_cid AS wCid, wallet, content, file_name AS fileName,
  file_size AS fileSize, file_type AS fileType, duration, price, status, created, contents.cid, car
  FROM uploads JOIN contents ON contents.id = uploads.content`

/** The table of uploads. Call writing methods inside a transaction. */
export class UploadTable {
  readonly #find
  readonly #findByWCid
  readonly #unpaid
  readonly #hasCar
  readonly #add

  constructor(db: Database) {
    this.#find = db.prepare(`SELECT ${UPLOAD_COLUMNS} WHERE uploads.id = ?`)
    this.#findByWCid = db.prepare(`SELECT ${UPLOAD_COLUMNS} WHERE w_cid = ?`)
    this.#unpaid = db.prepare(
      "SELECT coalesce(sum(file_size), 0) AS total FROM uploads WHERE status = 'Pending' AND wallet = ?",
    )
    this.#hasCar = db.prepare('SELECT 1 FROM uploads WHERE car = ? AND wallet = ? LIMIT 1')
    this.#add = db.prepare(
      'INSERT INTO uploads (w_cid, wallet, content, file_name, folded_name, file_size, file_type, duration, price, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
  }

  find(id: number): Upload | undefined {
    return this.#find.get(id) as Upload | undefined
  }

  findByWCid(wCid: string): Upload | undefined {
    return this.#findByWCid.get(wCid) as Upload | undefined
  }

  /** Bytes of the uploads that the wallet has not paid. */
  unpaidBytes(wallet: string): number {
    return this.#unpaid.get(wallet).total as number
  }

  /** True when an upload of the wallet is in the CAR. */
  hasCar(wallet: string, car: number): boolean {
    return this.#hasCar.get(car, wallet) !== undefined
  }

  /** @returns its number */
  add(upload: NewUpload): number {
    const { wCid, wallet, content, fileName, fileSize, fileType, duration, price, created } = upload
    const folded = fileName.toLowerCase()
    const row = [wCid, wallet, content, fileName, folded, fileSize, fileType, duration, price, created]
    return this.#add.run(...row).lastInsertRowid as number
  }
}
