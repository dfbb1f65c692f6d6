import type { Document, documents } from '../../../common/service-documents.js'
import type { Database } from '../../database.js'
import { minerNumber } from '../../platform/units.js'
import type { PaymentContext } from '../context.js'
import type { OfflineDeal } from '../dealing/deal-table.js'
import { PaymentError } from '../errors.js'
import {
  Fields,
  ownUpload,
  type Page,
  type PaymentExchange,
  readAddress,
  readJson,
  readPage,
  walletAddressOf,
} from '../exchange.js'
import { SHOWN_STATUSES, shownStatus, UPLOAD_COLUMNS, type UploadRow } from './upload-table.js'

/** GET /storage/tasks/deals: the uploads of a wallet, each with its offline deals. */
export async function showUploads(exchange: PaymentExchange): Promise<object> {
  const { context, query } = exchange
  await context.scheduler.catchUp()
  const fields = new Fields(query)
  const wallet = walletAddressOf(exchange, fields.get('wallet_address'))
  const minted = fields.get('is_minted')
  const filter = {
    wallet,
    fileName: fields.get('file_name'),
    minted: minted === 'y' ? true : minted === 'n' ? false : undefined,
    status: fields.get('status'),
  }
  const room = context.mode === 'signedIn' ? freeRoom(context, wallet) : undefined
  const { uploads, total } = listUploads(context.db, filter, readPage(query, uploadOrders, 'upload_at'))
  return {
    source_file_upload: uploads.map((upload) => uploadView(exchange, upload, room !== undefined)),
    total_record_count: total,
    ...(room && { free_usage: room.usage, free_quota_per_month: room.quota }),
  }
}

/** @param withFree where uploads may be free */
function uploadView({ context }: PaymentExchange, upload: UploadRow, withFree: boolean): object {
  const { wallets, cars, deals, mints } = context
  const mint = mints.find(upload.id)
  const sender = wallets.find(upload.wallet)?.id ?? 0
  const ofCar = upload.car === null ? [] : deals.ofCar(upload.car)
  const shown: Document<typeof documents.upload> = {
    source_file_upload_id: upload.id,
    car_file_id: upload.car ?? 0,
    file_name: upload.fileName,
    file_size: upload.fileSize,
    upload_at: upload.created,
    duration: upload.duration,
    pin_status: upload.place === 'here' ? 'Pinned' : 'UnPinned',
    payload_cid: upload.car === null ? '' : (cars.find(upload.car)?.payloadCid ?? ''),
    status: shownStatus(upload.status),
    token_id: mint?.tokenId ?? '',
    mint_address: mint?.mintAddress ?? '',
    nft_tx_hash: mint?.txHash ?? '',
  }
  return {
    ...shown,
    idempotency_key: upload.idempotencyKey ?? '',
    ...(withFree && { is_free: upload.isFree === 1 }),
    offline_deal: ofCar.map((deal) => dealView(deal, sender)),
  }
}

const orders = { file_name: 'file_name', file_size: 'file_size', upload_at: 'uploads.created' } as const

type UploadOrder = keyof typeof orders
const uploadOrders = Object.keys(orders) as UploadOrder[]

interface UploadFilter {
  readonly wallet: string
  /** A part of the file name, in any case. */
  readonly fileName: string | undefined
  /** True: those with an NFT; false: those without. */
  readonly minted: boolean | undefined
  /** As it is shown; undefined: any. */
  readonly status: string | undefined
}

/** The uploads by users, not by NFTs, on one page, and how many there are. Those that are equal come in their order. */
function listUploads(
  db: Database,
  { wallet, fileName, minted, status }: UploadFilter,
  { size, offset, orderBy, ascending }: Page<UploadOrder>,
): { readonly uploads: readonly UploadRow[]; readonly total: number } {
  const conditions = ['wallet = ?', 'file_type = 0']
  const values: (string | number)[] = [wallet]
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
  const rows = db.prepare(`SELECT ${UPLOAD_COLUMNS} ${where} ${order} LIMIT ? OFFSET ?`).all(...values, size, offset)
  const total = db.prepare(`SELECT count(*) AS total FROM uploads ${where}`).get(...values).total as number
  return { uploads: rows as UploadRow[], total }
}

/**
 * An offline deal, as the interface writes it.
 * @param sender number of the wallet that pays
 */
function dealView(deal: OfflineDeal, sender: number): Document<typeof documents.offlineDeal> {
  return {
    id: deal.id,
    car_file_id: deal.car,
    deal_cid: deal.dealCid,
    miner_id: minerNumber(deal.minerFid),
    verified: deal.verified === 1,
    start_epoch: deal.startEpoch,
    sender_wallet_id: sender,
    deal_id: deal.dealId,
    status: deal.status,
    note: deal.note,
    on_chain_status: deal.onChainStatus,
    tx_hash_unlock: deal.unlockHash,
    unlock_at: deal.unlockedAt,
    create_at: deal.created,
    update_at: deal.updated,
    miner_fid: deal.minerFid,
  }
}

/** What a wallet may upload for nothing in a calendar month (UTC), and what it has. */
interface FreeRoom {
  readonly usage: number
  readonly quota: number
  readonly uploads: number
}

/** Undefined where every upload is to be paid. */
function freeRoom({ limits, uploads, seconds }: PaymentContext, wallet: string): FreeRoom | undefined {
  const quota = limits.freeBytesPerMonth
  if (quota === 0) return undefined
  const used = uploads.freeUsage(wallet, monthOf(seconds()))
  return { usage: used.bytes, uploads: used.uploads, quota }
}

/** True if an upload fits into what is left of the month. Call it in the transaction that adds the upload. */
export function isFree(context: PaymentContext, wallet: string, fileType: 0 | 1, size: number): boolean {
  const room = freeRoom(context, wallet)
  if (room === undefined || fileType !== 0) return false
  return room.usage + size <= room.quota && room.uploads < context.limits.freeUploadsPerMonth
}

/** Unix seconds at which the month began. */
function monthOf(now: number): number {
  const date = new Date(now * 1000)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000
}

/**
 * GET /storage/source_file_upload/<id>: what a wallet needs to pay for an upload. `pay_amount` is the least amount, in
 * the smallest units of the coin: millionths in the embedded ledger. It is empty until the token of a chain is known.
 */
export async function showUpload(exchange: PaymentExchange): Promise<object> {
  const { scheduler, payments } = exchange.context
  await scheduler.catchUp()
  const upload = ownUpload(exchange, new Fields(Object.entries(exchange.path)).id('id'))
  const shown = {
    w_cid: upload.wCid,
    status: shownStatus(upload.status),
    is_free: upload.isFree === 1,
  }
  return {
    source_file_upload_id: upload.id,
    payload_cid: upload.cid,
    ...shown,
    // Clients that pay on a chain read these members here.
    source_file_upload: { id: upload.id, ...shown },
    pay_amount: upload.isFree === 1 ? '0' : String(payments.inUnits(BigInt(upload.price)) ?? ''),
    refused_payments: payments
      .refused(upload.wCid)
      .map(({ hash, amount, reason }) => ({ pay_tx_hash: hash, pay_amount: String(amount), reason })),
  }
}

/** POST /storage/mint/info: records the NFT of an upload, once. */
export async function recordMint(exchange: PaymentExchange): Promise<Document<typeof documents.mint>> {
  const { mints, writer, seconds } = exchange.context
  const fields = await readJson(exchange)
  const { id } = ownUpload(exchange, fields.id('source_file_upload_id'))
  const txHash = fields.required('tx_hash')
  const tokenId = fields.required('token_id')
  const mintAddress = fields.required('mint_address')
  readAddress('mint_address', mintAddress)
  const mint = await writer.run(() => {
    const known = mints.find(id)
    if (known === undefined) return mints.add({ upload: id, txHash, mintAddress, tokenId, created: seconds() })
    const same = known.txHash === txHash && known.mintAddress === mintAddress && known.tokenId === tokenId
    return same ? known : undefined
  })
  if (mint === undefined) throw new PaymentError('conflict', `mint info exists for source file upload id:${id}`)
  return {
    id: mint.id,
    source_file_upload_id: mint.upload,
    nft_tx_hash: mint.txHash,
    mint_address: mint.mintAddress,
    token_id: mint.tokenId,
    create_at: mint.created,
    update_at: mint.updated,
  }
}
