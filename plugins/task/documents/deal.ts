import { z } from 'zod'
import type { WireDeal } from '../wire/records.js'
import { timeOf } from './time.js'

/** A deal of a task, with the file that the provider fetches. */
export const platformDeal = z.object({
  Id: z.number().int().nullable(),
  DealCid: z.string().nullable(),
  FilePath: z.string().nullable(),
  FileSourceUrl: z.string().describe('Empty for callers who are neither poster nor provider.'),
  Md5Origin: z.string().nullable(),
  MinerId: z.number().int().nullable(),
  Note: z.string().nullable(),
  StartEpoch: z.number().int().nullable(),
  Status: z.string(),
  TaskId: z.number().int().nullable(),
  UserId: z.number().int().nullable(),
  Created: z.string().describe('As the platform wrote it.'),
  CreatedAt: z.string().optional().describe('The same in RFC 3339.'),
  Updated: z.string().describe('As the platform wrote it.'),
  UpdatedAt: z.string().optional().describe('The same in RFC 3339.'),
})
export type PlatformDealDocument = z.output<typeof platformDeal>

export function dealOf(deal: WireDeal): PlatformDealDocument {
  const created = timeOf(deal.created_at)
  const updated = timeOf(deal.updated_at)
  return {
    Id: deal.id,
    DealCid: deal.deal_cid,
    FilePath: deal.file_path,
    FileSourceUrl: deal.file_source_url,
    Md5Origin: deal.md5_origin,
    MinerId: deal.miner_id,
    Note: deal.note,
    StartEpoch: deal.start_epoch,
    Status: deal.status,
    TaskId: deal.task_id,
    UserId: deal.user_id,
    Created: deal.created_at,
    ...(created !== undefined && { CreatedAt: created }),
    Updated: deal.updated_at,
    ...(updated !== undefined && { UpdatedAt: updated }),
  }
}
