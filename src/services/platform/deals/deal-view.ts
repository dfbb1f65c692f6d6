import { minerNumber } from '../units/miner-number.js'
import type { PlatformDeal } from './deal-table.js'

/**
 * A platform deal as the interface shows it.
 * @param toParty false for readers who are neither the poster nor the provider: they do not see where the CAR is
 */
export function dealView(deal: PlatformDeal, toParty: boolean) {
  return {
    created_at: String(deal.created),
    deal_cid: deal.dealCid,
    file_path: deal.filePath,
    file_source_url: toParty ? deal.fileSourceUrl : '',
    id: deal.id,
    md5_origin: deal.md5,
    miner_id: deal.minerId === null ? null : minerNumber(deal.minerId),
    note: deal.note,
    start_epoch: deal.startEpoch,
    status: deal.status,
    task_id: deal.task,
    updated_at: String(deal.updated),
    user_id: deal.user,
  }
}
