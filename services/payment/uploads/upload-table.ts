import { Columns } from '../../columns.js'
import { type Connection, type Statement, statements, tableOf, type Value } from '../../store/database.js'
import type { ContentLocation } from '../contents/content-table.js'
import type { Page } from '../page.js'

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
  /** Key of the request, by which the client of the wallet recognises it; null for none. */
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

/** Statuses that are shown as they are. Every other one is shown as `Processing`. */
const SHOWN_STATUSES: readonly UploadStatus[] = ['Pending', 'Refundable', 'Refunded', 'Success']

export function shownStatus(status: UploadStatus): string {
  return SHOWN_STATUSES.includes(status) ? status : 'Processing'
}

const UPLOAD_COLUMNS = `uploads.id, w_cid AS "wCid", wallet, content, file_name AS "fileName",
  file_size AS "fileSize", file_type AS "fileType", duration, price, status, created, created_epoch AS "createdEpoch",
  is_free AS "isFree", idempotency_key AS "idempotencyKey",
  contents.cid, car, place
  FROM uploads JOIN contents ON contents.id = uploads.content`

const UPLOAD = new Columns<NewUpload & { readonly foldedName: string; readonly status: UploadStatus }>({})

const ADDED = [
  ...(['wCid', 'wallet', 'content', 'fileName', 'foldedName', 'fileSize', 'fileType', 'duration', 'price'] as const),
  ...(['created', 'createdEpoch', 'isFree', 'status', 'idempotencyKey'] as const),
]

/** What a wallet takes of the room for contents. */
interface Standing {
  /** What is on its way to storage providers, paid or not. */
  readonly open: Amount
  /** What it has not paid, or need not pay, while it has no deal. */
  readonly unpaid: Amount
  /** It has no coins, and never paid. */
  readonly isStranger: boolean
}

type StandingRow = Readonly<Record<'openBytes' | 'openUploads' | 'unpaidBytes' | 'unpaidUploads' | 'strange', number>>

/** The table of uploads. Call writing methods inside a transaction. */
export class UploadTable {
  readonly #connection: Connection
  readonly #sql

  constructor(connection: Connection) {
    this.#connection = connection
    const amount = 'SELECT coalesce(sum(file_size), 0) AS bytes, count(*) AS uploads FROM uploads'
    const unpaid = "(status = 'Pending' OR (is_free = 1 AND status IN ('Free', 'TaskCreated')))"
    const strange = (wallet: string): string => `NOT EXISTS (SELECT 1 FROM locks WHERE locks.wallet = ${wallet})
      AND NOT EXISTS (SELECT 1 FROM accounts WHERE name = 'wallet ' || ${wallet} AND balance > 0)`
    this.#sql = statements(connection, {
      find: `SELECT ${UPLOAD_COLUMNS} WHERE uploads.id = ?`,
      findByWCid: `SELECT ${UPLOAD_COLUMNS} WHERE w_cid = ?`,
      findByKey: `SELECT ${UPLOAD_COLUMNS} WHERE wallet = ? AND idempotency_key = ?`,
      standing: `SELECT coalesce(sum(file_size), 0) AS "openBytes", count(*) AS "openUploads",
          coalesce(sum(file_size) FILTER (WHERE ${unpaid}), 0) AS "unpaidBytes",
          count(*) FILTER (WHERE ${unpaid}) AS "unpaidUploads", ${strange('?1')} AS strange
        FROM uploads WHERE wallet = ?1 AND status NOT IN ('Success', 'Refunded')`,
      strange: `${amount} WHERE ${unpaid} AND ${strange('uploads.wallet')}`,
      hasCar: 'SELECT 1 FROM uploads WHERE car = ? AND wallet = ? LIMIT 1',
      freeUsage: `${amount} WHERE wallet = ? AND is_free = 1 AND created >= ?`,
      add: `${UPLOAD.insert('uploads', ADDED)} RETURNING id`,
    })
  }

  find(id: number): Promise<UploadRow | undefined> {
    return this.#sql.find.get<UploadRow>(id)
  }

  findByWCid(wCid: string): Promise<UploadRow | undefined> {
    return this.#sql.findByWCid.get<UploadRow>(wCid)
  }

  /** The wallet's upload of a request with this key. */
  findByKey(wallet: string, idempotencyKey: string): Promise<UploadRow | undefined> {
    return this.#sql.findByKey.get<UploadRow>(wallet, idempotencyKey)
  }

  /** The uploads by users, not by NFTs, on one page, and how many there are. Equal ones come in their order. */
  async list(
    { wallet, fileName, minted, status }: UploadFilter,
    { size, offset, orderBy, ascending }: Page<UploadOrder>,
  ): Promise<{ readonly uploads: readonly UploadRow[]; readonly total: number }> {
    const conditions = ['wallet = ?', 'file_type = 0']
    const values: Value[] = [wallet]
    if (fileName !== undefined) {
      conditions.push('instr(folded_name, ?) > 0')
      values.push(fileName.toLowerCase())
    }
    if (minted !== undefined)
      conditions.push(`${minted ? '' : 'NOT '}EXISTS (SELECT 1 FROM mints WHERE upload = uploads.id)`)
    const shown = SHOWN_STATUSES.map((one) => `'${one}'`).join(', ')
    if (status === 'Processing') conditions.push(`status NOT IN (${shown})`)
    else if (SHOWN_STATUSES.some((one) => one === status)) {
      conditions.push('status = ?')
      values.push(status as string)
    }
    const where = `WHERE ${conditions.join(' AND ')}`
    const direction = ascending ? 'ASC' : 'DESC'
    const order = `ORDER BY ${orders[orderBy]} ${direction}, uploads.id ${direction}`
    const page = this.#connection.prepare(`SELECT ${UPLOAD_COLUMNS} ${where} ${order} LIMIT ? OFFSET ?`)
    const count = this.#connection.prepare(`SELECT count(*) AS total FROM uploads ${where}`)
    const uploads = await page.all<UploadRow>(...values, size, offset)
    return { uploads, total: (await count.get<{ total: number }>(...values))?.total ?? 0 }
  }

  async standing(wallet: string): Promise<Standing> {
    const row = await this.#sql.standing.get<StandingRow>(wallet)
    const { openBytes = 0, openUploads = 0, unpaidBytes = 0, unpaidUploads = 0, strange = 0 } = row ?? {}
    return {
      open: { bytes: openBytes, uploads: openUploads },
      unpaid: { bytes: unpaidBytes, uploads: unpaidUploads },
      isStranger: strange === 1,
    }
  }

  /** What wallets have not paid, or need not pay, that have no coins and never paid: making one costs nothing. */
  unpaidOfStrangers(): Promise<Amount> {
    return amountOf(this.#sql.strange)
  }

  async hasCar(wallet: string, car: number): Promise<boolean> {
    return (await this.#sql.hasCar.get(car, wallet)) !== undefined
  }

  /** What the wallet uploaded for free since then, in Unix seconds. */
  freeUsage(wallet: string, since: number): Promise<Amount> {
    return amountOf(this.#sql.freeUsage, wallet, since)
  }

  /** @returns its number */
  async add(upload: NewUpload): Promise<number> {
    const foldedName = upload.fileName.toLowerCase()
    const status = upload.isFree ? 'Free' : 'Pending'
    const row = await this.#sql.add.get<{ id: number }>(...UPLOAD.values({ ...upload, foldedName, status }, ADDED))
    if (row === undefined) throw new Error('The upload has no number.')
    return row.id
  }
}

async function amountOf(statement: Statement, ...values: readonly Value[]): Promise<Amount> {
  return (await statement.get<Amount>(...values)) ?? { bytes: 0, uploads: 0 }
}

const orders = { file_name: 'file_name', file_size: 'file_size', upload_at: 'uploads.created' } as const

type UploadOrder = keyof typeof orders
export const uploadOrders = Object.keys(orders) as UploadOrder[]

interface UploadFilter {
  readonly wallet: string
  /** A part of the file name, in any case. */
  readonly fileName: string | undefined
  /** True: those with an NFT; false: those without. */
  readonly minted: boolean | undefined
  /** Status as it is shown; undefined: any. */
  readonly status: string | undefined
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
export class MintTable extends tableOf({
  find: 'SELECT * FROM mints WHERE upload = ?',
  add: MINT.insert('mints', MINTED),
}) {
  /** @param upload its number */
  async find(upload: number): Promise<Mint | undefined> {
    const row = await this.sql.find.get(upload)
    return row && MINT.read(row)
  }

  /** Throws when the upload has one. */
  async add(mint: Omit<Mint, 'id' | 'updated'>): Promise<Mint> {
    await this.sql.add.run(...MINT.values({ ...mint, updated: mint.created }, MINTED))
    return (await this.find(mint.upload)) as Mint
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
