import { dealView } from '../deals/deal-view.js'
import type { Exchange } from '../http/exchange.js'
import { Fields } from '../http/fields.js'
import { readPage } from '../http/paging.js'
import { walletAddressOf } from '../sign-in/caller.js'
import { freeRoom } from '../uploads/free.js'
import { shownStatus, type Upload } from '../uploads/upload-table.js'
import { listUploads, uploadOrders } from './upload-list.js'

/** GET /storage/tasks/deals: the uploads of a wallet, each with its offline deals. */
export async function showUploads(exchange: Exchange): Promise<object> {
  const { context, query } = exchange
  await context.mover.catchUp()
  const fields = new Fields(query)
  const wallet = walletAddressOf(exchange, fields.get('wallet_address'))
  const minted = fields.get('is_minted')
  const filter = {
    wallet,
    fileName: fields.get('file_name'),
    minted: minted === 'y' ? true : minted === 'n' ? false : undefined,
    status: fields.get('status'),
  }
  const room = context.variant === 'a' ? freeRoom(context, wallet) : undefined
  const { uploads, total } = listUploads(context.db, filter, readPage(query, uploadOrders, 'upload_at'))
  return {
    source_file_upload: uploads.map((upload) => uploadView(exchange, upload, room !== undefined)),
    total_record_count: total,
    ...(room && { free_usage: room.usage, free_quota_per_month: room.quota }),
  }
}

/** @param withFree where uploads may be free */
function uploadView({ context }: Exchange, upload: Upload, withFree: boolean): object {
  const { wallets, cars, deals, mints } = context
  const mint = mints.find(upload.id)
  const sender = wallets.find(upload.wallet)?.id ?? 0
  const ofCar = upload.car === null ? [] : deals.ofCar(upload.car)
  return {
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
    ...(withFree && { is_free: upload.isFree === 1 }),
    offline_deal: ofCar.map((deal) => dealView(deal, sender)),
  }
}
