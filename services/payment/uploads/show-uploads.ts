import pMap from 'p-map'
import type { Document, documents } from '../../../common/service-documents.js'
import { minerNumber } from '../../platform/units.js'
import type { PaymentContext } from '../context.js'
import type { OfflineDeal } from '../dealing/deal-table.js'
import { PaymentError } from '../errors.js'
import { Fields, ownUpload, type PaymentExchange, readAddress, readJson, walletAddressOf } from '../exchange.js'
import { readPage } from '../page.js'
import { shownStatus, type UploadRow, type UploadTable, uploadOrders } from './upload-table.js'

/** Uploads of a page that are looked up at the same time: a database has few connections. */
const AT_ONCE = 4

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
  const table = context.db.read.uploads
  const room = context.mode === 'signedIn' ? await freeRoom(context, table, wallet) : undefined
  const { uploads, total } = await table.list(filter, readPage(query, uploadOrders, 'upload_at'))
  return {
    source_file_upload: await pMap(uploads, (upload) => uploadView(exchange, upload, room !== undefined), {
      concurrency: AT_ONCE,
    }),
    total_record_count: total,
    ...(room && { free_usage: room.usage, free_quota_per_month: room.quota }),
  }
}

/** @param withFree where uploads may be free */
async function uploadView({ context }: PaymentExchange, upload: UploadRow, withFree: boolean): Promise<object> {
  const { wallets, cars, deals, mints } = context.db.read
  const mint = await mints.find(upload.id)
  const sender = (await wallets.find(upload.wallet))?.id ?? 0
  const car = upload.car === null ? undefined : await cars.find(upload.car)
  const ofCar = upload.car === null ? [] : await deals.ofCar(upload.car)
  const shown: Document<typeof documents.upload> = {
    source_file_upload_id: upload.id,
    car_file_id: upload.car ?? 0,
    file_name: upload.fileName,
    file_size: upload.fileSize,
    upload_at: upload.created,
    duration: upload.duration,
    pin_status: upload.place === 'here' ? 'Pinned' : 'UnPinned',
    payload_cid: car?.payloadCid ?? '',
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
async function freeRoom(
  { limits, seconds }: PaymentContext,
  uploads: UploadTable,
  wallet: string,
): Promise<FreeRoom | undefined> {
  const quota = limits.freeBytesPerMonth
  if (quota === 0) return undefined
  const used = await uploads.freeUsage(wallet, monthOf(seconds()))
  return { usage: used.bytes, uploads: used.uploads, quota }
}

/**
 * True if an upload fits into what is left of the month.
 * @param uploads of the transaction that adds the upload
 */
export async function isFree(
  context: PaymentContext,
  uploads: UploadTable,
  { wallet, fileType, size }: { readonly wallet: string; readonly fileType: 0 | 1; readonly size: number },
): Promise<boolean> {
  const room = await freeRoom(context, uploads, wallet)
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
  const upload = await ownUpload(exchange, new Fields(Object.entries(exchange.path)).id('id'))
  const least = upload.isFree === 1 ? 0n : await payments.inUnits(BigInt(upload.price))
  const refused = await payments.refused(upload.wCid)
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
    pay_amount: String(least ?? ''),
    refused_payments: refused.map(({ hash, amount, reason }) => ({
      pay_tx_hash: hash,
      pay_amount: String(amount),
      reason,
    })),
  }
}

/** POST /storage/mint/info: records the NFT of an upload, once. */
export async function recordMint(exchange: PaymentExchange): Promise<Document<typeof documents.mint>> {
  const { db, seconds } = exchange.context
  const fields = await readJson(exchange)
  const { id } = await ownUpload(exchange, fields.id('source_file_upload_id'))
  const txHash = fields.required('tx_hash')
  const tokenId = fields.required('token_id')
  const mintAddress = fields.required('mint_address')
  readAddress('mint_address', mintAddress)
  const mint = await db.transaction(async ({ mints }) => {
    const known = await mints.find(id)
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
