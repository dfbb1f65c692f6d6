import type { PlatformDeal } from './deal-table.js'
import { minerNumber } from './miner-number.js'

/** A platform deal as the interface shows it. */
export function dealView(deal: PlatformDeal) {
  return {
    created_at: String(deal.created),
    deal_cid: deal.dealCid,
    file_path: deal.filePath,
    file_source_url: deal.fileSourceUrl,
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
