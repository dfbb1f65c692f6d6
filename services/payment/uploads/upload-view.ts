import type { Document, documents } from '../../../common/service-documents.js'
import { minerNumber } from '../../platform/units.js'
import type { PaymentContext } from '../context.js'
import type { OfflineDeal } from '../dealing/deal-table.js'
import { shownStatus, type UploadRow } from './upload-table.js'

/**
 * An upload with its offline deals, as the interface writes it.
 * @param withFree where uploads may be free
 */
export async function uploadView(context: PaymentContext, upload: UploadRow, withFree: boolean) {
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
