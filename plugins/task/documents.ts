import { type ProviderDocument, providerDocument, providerDocumentOf, type WireProvider } from 'dealgate'
import { z } from 'zod'
import { type WireBid, type WireDeal, type WireTask, wireBidder } from './wire.js'

export const bidDocument = z.object({
  BidId: z.number().int().nullable(),
  Status: z.string(),
  Price: z.string().describe('Decimal, as text: fil per GiB and epoch.'),
  MinPieceSize: z.string(),
  Proposal: z.string(),
  ExpireDays: z.number().int().nullable(),
  ContactInfo: z.string(),
  Username: z.string(),
  CreatedOn: z.string(),
  CreatedAt: z.string().optional().describe('CreatedOn in RFC 3339.'),
  WonOn: z.string().nullable(),
  User: z
    .object({
      Status: z.string(),
      RegisteredOn: z.string(),
      Headline: z.string().nullable(),
      Summary: z.string().nullable(),
      Providers: z.array(providerDocument).meta({ element: 'Provider' }),
    })
    .optional(),
})

type BidDocument = z.output<typeof bidDocument>

export function bidOf(bid: WireBid): BidDocument {
  const created = timeOf(bid.created_on)
  const bidder = wireBidder.safeParse(bid.platform_user_info ?? bid.user_info).data
  return {
    BidId: bid.bid_id,
    Status: bid.status,
    Price: bid.price,
    MinPieceSize: bid.min_piece_size,
    Proposal: bid.proposal,
    ExpireDays: bid.expire_days,
    ContactInfo: bid.contact_info,
    Username: bid.username,
    CreatedOn: bid.created_on,
    ...(created !== undefined && { CreatedAt: created }),
    WonOn: bid.won_on,
    ...(bidder && {
      User: {
        Status: bidder.status,
        RegisteredOn: bidder.registered_on,
        Headline: bidder.headline,
        Summary: bidder.summary,
        Providers: bidder.miners.map(providerOf),
      },
    }),
  }
}

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

type PlatformDealDocument = z.output<typeof platformDeal>

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

export function providerOf(provider: WireProvider): ProviderDocument {
  return providerDocumentOf(provider, timeOf(provider.update_time_str))
}

export const taskDocument = z.object({
  TaskId: z.number().int().nullable(),
  TaskUuid: z.string().optional(),
  TaskName: z.string(),
  Description: z.string(),
  Type: z.string().nullable().describe('regular or verified.'),
  Status: z.string(),
  IsPublic: z.boolean(),
  Tags: z.array(z.string()).meta({ element: 'Tag' }),
  MinPrice: z.string().nullable().describe('Decimal, as text: fil per GiB and epoch.'),
  MaxPrice: z.string().nullable().describe('Decimal, as text: fil per GiB and epoch.'),
  MinerId: z.string().nullable(),
  ExpireDays: z.number().int().nullable(),
  TaskFileName: z.string(),
  CreatedOn: z.string().describe('As the platform wrote it.'),
  CreatedAt: z.string().optional().describe('The same in RFC 3339.'),
  BidCount: z.number().int().optional(),
  DealCount: z.number().int().optional(),
  SuccessfulDealCount: z.number().int().optional(),
})

type TaskDocument = z.output<typeof taskDocument>

/** @param uuid of the task, where the answer does not hold it */
export function taskOf(task: WireTask, uuid: string | null = task.uuid): TaskDocument {
  const created = timeOf(task.created_on)
  return {
    TaskId: task.task_id,
    ...(uuid !== null && { TaskUuid: uuid }),
    TaskName: task.task_name,
    Description: task.description,
    Type: task.type,
    Status: task.status,
    IsPublic: task.is_public,
    Tags: task.tags
      .split(',')
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ''),
    MinPrice: task.min_price,
    MaxPrice: task.max_price,
    MinerId: task.miner_id,
    ExpireDays: task.expire_days,
    TaskFileName: task.task_file_name,
    CreatedOn: task.created_on,
    ...(created !== undefined && { CreatedAt: created }),
    ...(task.bid_count !== null && { BidCount: task.bid_count }),
    ...(task.deal_count !== null && { DealCount: task.deal_count }),
    ...(task.successful_deal_count !== null && { SuccessfulDealCount: task.successful_deal_count }),
  }
}

const MILLISECONDS: Readonly<Record<number, (digits: string) => number>> = {
  10: (seconds) => Number(seconds) * 1000,
  13: Number,
  16: (micro) => Math.floor(Number(micro) / 1000),
}

/** A time in digits, in seconds, milli- or microseconds by their number, in RFC 3339; undefined for other text. */
export function timeOf(digits: string | null): string | undefined {
  if (digits === null || !/^\d+$/.test(digits)) return undefined
  const time = MILLISECONDS[digits.length]?.(digits)
  return time === undefined ? undefined : `${new Date(time).toISOString().slice(0, 19)}Z`
}
