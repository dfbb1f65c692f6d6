import { minerNumber } from '../../platform/units/miner-number.js'
import type { OfflineDeal } from './deal-table.js'

/**
 * An offline deal, as the interface writes it.
 * @param sender number of the wallet that pays
 */
export function dealView(deal: OfflineDeal, sender: number): object {
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
