import { Columns } from '../../columns.js'
import { type Database, statements } from '../../database.js'
import type { ContentLocation } from '../contents/content-table.js'

interface NewUpload {
  /** A UUID and the CID of the content. */
  readonly wCid: string
  /** Address of its wallet, in lower case. */
  readonly wallet: string
  readonly content: number
  readonly fileName: string
  readonly fileSize: number
  /** 0 by a user, 1 by an NFT. */
  readonly fileType: 0 | 1
  /** Days. */
  readonly duration: number
  /** Least payment, millionths of a stable coin. */
  readonly price: number
  readonly created: number
  /** The same as an epoch of the network. */
  readonly createdEpoch: number
  /** 1: nothing is to be paid. */
  readonly isFree: 0 | 1
  /** Of the request, by which the wallet's client recognises it; null for none. */
  readonly idempotencyKey: string | null
}

/**
 * `Free` where nothing is to be paid. Else `Pending`, `Paid` once a payment is locked, `TaskCreated` once it is in a
 * CAR, `Success` once the deal is active and paid; `Refundable` when it has no deal in time, `Refunded` when the
 * payment went back.
 */
type UploadStatus = 'Free' | 'Pending' | 'Paid' | 'TaskCreated' | 'Success' | 'Refundable' | 'Refunded'

export interface Amount {
  readonly bytes: number
  readonly uploads: number
}

export interface UploadRow extends NewUpload {
  readonly id: number
  readonly status: UploadStatus
  readonly cid: string
  readonly car: number | null
  readonly place: ContentLocation
}

/** Those that are shown as they are. Every other one is shown as `Processing`. */
export const SHOWN_STATUSES: readonly UploadStatus[] = ['Pending', 'Refundable', 'Refunded', 'Success']

export function shownStatus(status: UploadStatus): string {
  return SHOWN_STATUSES.includes(status) ? status : 'Processing'
}

export const UPLOAD_COLUMNS = `uploads.id, w_cid AS wCid, wallet, content, file_name AS fileName,
  file_size AS fileSize, file_type AS fileType, duration, price, status, created, created_epoch AS createdEpoch,
  is_free AS isFree, idempotency_key AS idempotencyKey,
  contents.cid, car, place
  FROM uploads JOIN contents ON contents.id = uploads.content`

const UPLOAD = new Columns<NewUpload & { readonly foldedName: string; readonly status: UploadStatus }>({})

const ADDED = [
  ...(['wCid', 'wallet', 'content', 'fileName', 'foldedName', 'fileSize', 'fileType', 'duration', 'price'] as const),
  ...(['created', 'createdEpoch', 'isFree', 'status', 'idempotencyKey'] as const),
]

/** The table of uploads. Call writing methods inside a transaction. */
export class UploadTable {
  readonly #sql

  constructor(db: Database) {
    const amount = 'SELECT coalesce(sum(file_size), 0) AS bytes, count(*) AS uploads FROM uploads'
    const unpaid = "(status = 'Pending' OR (is_free = 1 AND status IN ('Free', 'TaskCreated')))"
    const strange = (wallet: string): string => `NOT EXISTS (SELECT 1 FROM locks WHERE locks.wallet = ${wallet})
      AND NOT EXISTS (SELECT 1 FROM accounts WHERE name = 'wallet ' || ${wallet} AND balance > 0)`
    this.#sql = statements(db, {
      find: `SELECT ${UPLOAD_COLUMNS} WHERE uploads.id = ?`,
      findByWCid: `SELECT ${UPLOAD_COLUMNS} WHERE w_cid = ?`,
      findByKey: `SELECT ${UPLOAD_COLUMNS} WHERE wallet = ? AND idempotency_key = ?`,
      unpaid: `${amount} WHERE ${unpaid} AND wallet = ?`,
      open: `${amount} WHERE status NOT IN ('Success', 'Refunded') AND wallet = ?`,
      strange: `${amount} WHERE ${unpaid} AND ${strange('uploads.wallet')}`,
      isStranger: `SELECT ${strange('named.wallet')} AS strange FROM (SELECT ? AS wallet) AS named`,
      hasCar: 'SELECT 1 FROM uploads WHERE car = ? AND wallet = ? LIMIT 1',
      freeUsage: `${amount} WHERE wallet = ? AND is_free = 1 AND created >= ?`,
      add: UPLOAD.insert('uploads', ADDED),
    })
  }

  find(id: number): UploadRow | undefined {
    return this.#sql.find.get(id) as UploadRow | undefined
  }

  findByWCid(wCid: string): UploadRow | undefined {
    return this.#sql.findByWCid.get(wCid) as UploadRow | undefined
  }

  /** The wallet's upload of a request with this key. */
  findByKey(wallet: string, idempotencyKey: string): UploadRow | undefined {
    return this.#sql.findByKey.get(wallet, idempotencyKey) as UploadRow | undefined
  }

  /** What the wallet has not paid, or need not pay, while it has no deal. */
  unpaid(wallet: string): Amount {
    return this.#sql.unpaid.get(wallet) as unknown as Amount
  }

  /** What is on its way to storage providers, paid or not. */
  open(wallet: string): Amount {
    return this.#sql.open.get(wallet) as unknown as Amount
  }

  /** What wallets have not paid, or need not pay, that have no coins and never paid: making one costs nothing. */
  unpaidOfStrangers(): Amount {
    return this.#sql.strange.get() as unknown as Amount
  }

  isStranger(wallet: string): boolean {
    return this.#sql.isStranger.get(wallet)?.strange === 1
  }

  hasCar(wallet: string, car: number): boolean {
    return this.#sql.hasCar.get(car, wallet) !== undefined
  }

  /** What the wallet uploaded for free since then, in Unix seconds. */
  freeUsage(wallet: string, since: number): Amount {
    return this.#sql.freeUsage.get(wallet, since) as unknown as Amount
  }

  /** @returns its number */
  add(upload: NewUpload): number {
    const foldedName = upload.fileName.toLowerCase()
    const status = upload.isFree ? 'Free' : 'Pending'
    const row = UPLOAD.values({ ...upload, foldedName, status }, ADDED)
    return this.#sql.add.run(...row).lastInsertRowid as number
  }
}

interface Mint {
  readonly id: number
  readonly upload: number
  readonly txHash: string
  readonly mintAddress: string
  readonly tokenId: string
  readonly created: number
  readonly updated: number
}

const MINT = new Columns<Mint>({})
const MINTED = ['upload', 'txHash', 'mintAddress', 'tokenId', 'created', 'updated'] as const

/** The table of NFTs. Call writing methods inside a transaction. */
export class MintTable {
  readonly #find
  readonly #add

  constructor(db: Database) {
    this.#find = db.prepare('SELECT * FROM mints WHERE upload = ?')
    this.#add = db.prepare(MINT.insert('mints', MINTED))
  }

  /** @param upload its number */
  find(upload: number): Mint | undefined {
    const row = this.#find.get(upload)
    return row && MINT.read(row)
  }

  /** Throws when the upload has one. */
  add(mint: Omit<Mint, 'id' | 'updated'>): Mint {
    this.#add.run(...MINT.values({ ...mint, updated: mint.created }, MINTED))
    return this.find(mint.upload) as Mint
  }
}

/**
 * Uploads, each of one content by one wallet. `folded_name` is the file name in lower case, by which lists are
 * searched. `duration` is in days; `file_type` is 0 for an upload of a user, 1 for one of an NFT. Times are Unix
 * seconds.
 */
export const uploadSchema = `
  CREATE TABLE uploads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    w_cid TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents (id),
    file_name TEXT NOT NULL,
    folded_name TEXT NOT NULL,
    file_size INTEGER NOT NULL,
    file_type INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'Pending',
    created INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX uploads_of_wallet ON uploads (wallet, file_type, id);
  CREATE INDEX unpaid_uploads ON uploads (wallet, file_size) WHERE status = 'Pending';
`

/** Uploads within the part of a month that is free. */
export const freeSchema = `
  ALTER TABLE uploads ADD COLUMN is_free INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX free_uploads ON uploads (wallet, created) WHERE is_free = 1;
  CREATE INDEX open_free_uploads ON uploads (created_epoch) WHERE is_free = 1 AND status IN ('Free', 'TaskCreated');
`

/** A repeated request has the key of the first. */
export const idempotencySchema = `
  ALTER TABLE uploads ADD COLUMN idempotency_key TEXT;
  CREATE UNIQUE INDEX uploads_by_key ON uploads (wallet, idempotency_key) WHERE idempotency_key IS NOT NULL;
`
