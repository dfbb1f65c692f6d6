import { z } from 'zod'
import type { WireOfflineDeal, WireUpload } from '../wire/records.js'
import { timeOf } from './time.js'

const seconds = z.number().int().describe('Unix seconds; 0 for never.')
const rfc3339 = z.string().optional().describe('The same in RFC 3339.')

export const offlineDeal = z.object({
  Id: z.number().int().describe('Number of this offline deal, by which its log is read.'),
  CarFileId: z.number().int(),
  DealCid: z.string(),
  DealId: z.number().int().describe('Number of the deal on the chain; 0 while there is none.'),
  MinerId: z.number().int(),
  MinerFid: z.string(),
  Verified: z.boolean(),
  StartEpoch: z.number().int(),
  SenderWalletId: z.number().int(),
  Status: z.string(),
  Note: z.string().nullable(),
  OnChainStatus: z.string(),
  TxHashUnlock: z.string().nullable(),
  UnlockAt: seconds,
  UnlockTime: rfc3339,
  CreateAt: seconds,
  CreateTime: rfc3339,
  UpdateAt: seconds,
  UpdateTime: rfc3339,
})
export type OfflineDealDocument = z.output<typeof offlineDeal>

export const uploadDocument = z.object({
  SourceFileUploadId: z.number().int(),
  CarFileId: z.number().int().describe('0 while it is in no CAR.'),
  FileName: z.string(),
  FileSize: z.number().int().describe('Bytes.'),
  UploadAt: seconds,
  UploadTime: rfc3339,
  DurationDays: z.number().int(),
  PinStatus: z.string(),
  PayloadCid: z.string().describe('Of the CAR; empty while there is none.'),
  Status: z.string(),
  TokenId: z.string(),
  MintAddress: z.string(),
  NftTxHash: z.string(),
  OfflineDeals: z.array(offlineDeal).meta({ element: 'OfflineDeal' }),
})
export type UploadDocument = z.output<typeof uploadDocument>

export function offlineDealOf(deal: WireOfflineDeal): OfflineDealDocument {
  const [unlocked, created, updated] = [deal.unlock_at, deal.create_at, deal.update_at].map(timeOf)
  return {
    Id: deal.id,
    CarFileId: deal.car_file_id,
    DealCid: deal.deal_cid,
    DealId: deal.deal_id,
    MinerId: deal.miner_id,
    MinerFid: deal.miner_fid,
    Verified: deal.verified,
    StartEpoch: deal.start_epoch,
    SenderWalletId: deal.sender_wallet_id,
    Status: deal.status,
    Note: deal.note,
    OnChainStatus: deal.on_chain_status,
    TxHashUnlock: deal.tx_hash_unlock,
    UnlockAt: deal.unlock_at,
    ...(unlocked !== undefined && { UnlockTime: unlocked }),
    CreateAt: deal.create_at,
    ...(created !== undefined && { CreateTime: created }),
    UpdateAt: deal.update_at,
    ...(updated !== undefined && { UpdateTime: updated }),
  }
}

export function uploadOf(upload: WireUpload): UploadDocument {
  const uploaded = timeOf(upload.upload_at)
  return {
    SourceFileUploadId: upload.source_file_upload_id,
    CarFileId: upload.car_file_id,
    FileName: upload.file_name,
    FileSize: upload.file_size,
    UploadAt: upload.upload_at,
    ...(uploaded !== undefined && { UploadTime: uploaded }),
    DurationDays: upload.duration,
    PinStatus: upload.pin_status,
    PayloadCid: upload.payload_cid,
    Status: upload.status,
    TokenId: upload.token_id,
    MintAddress: upload.mint_address,
    NftTxHash: upload.nft_tx_hash,
    OfflineDeals: upload.offline_deal.map(offlineDealOf),
  }
}
