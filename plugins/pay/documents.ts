import { z } from 'zod'
import type { WireBill, WireDetail, WireOfflineDeal, WireUpload } from './wire.js'

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

type OfflineDealDocument = z.output<typeof offlineDeal>

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

export const billDocument = z.object({
  PayId: z.number().int(),
  PayTxHash: z.string(),
  PayAmount: z.string().describe('Digits, in the smallest unit of the token.'),
  UnlockAmount: z.string().describe('The same; empty while the payment is locked.'),
  FileName: z.string(),
  PayloadCid: z.string(),
  PayAt: seconds,
  PayTime: rfc3339,
  UnlockAt: seconds,
  UnlockTime: rfc3339,
  Deadline: seconds,
  DeadlineTime: rfc3339,
  NetworkName: z.string(),
  TokenName: z.string(),
})

type BillDocument = z.output<typeof billDocument>

export function billOf(bill: WireBill): BillDocument {
  const [paid, unlocked, deadline] = [bill.pay_at, bill.unlock_at, bill.deadline].map(timeOf)
  return {
    PayId: bill.pay_id,
    PayTxHash: bill.pay_tx_hash,
    PayAmount: bill.pay_amount,
    UnlockAmount: bill.unlock_amount,
    FileName: bill.file_name,
    PayloadCid: bill.payload_cid,
    PayAt: bill.pay_at,
    ...(paid !== undefined && { PayTime: paid }),
    UnlockAt: bill.unlock_at,
    ...(unlocked !== undefined && { UnlockTime: unlocked }),
    Deadline: bill.deadline,
    ...(deadline !== undefined && { DeadlineTime: deadline }),
    NetworkName: bill.network_name,
    TokenName: bill.token_name,
  }
}

export const dealDetail = z.object({
  DealId: z.number().int().describe('0 for an upload without a deal.'),
  DealCid: z.string(),
  MessageCid: z.string(),
  PieceCid: z.string(),
  Signature: z.string(),
  SignatureType: z.string(),
  PieceSizeFormat: z.string(),
  Client: z.string(),
  ClientCollateralFormat: z.string(),
  Provider: z.string(),
  ProviderTag: z.string(),
  ProviderCollateralFormat: z.string(),
  NetworkName: z.string(),
  IpfsUrl: z.string(),
  FileName: z.string(),
  WCid: z.string(),
  Height: z.number().int().describe('Epoch of the chain.'),
  StartHeight: z.number().int(),
  EndHeight: z.number().int().describe('Epoch at which the deal expires.'),
  CreatedAt: z.number().int().describe('Unix seconds; 0 for never.'),
  CreatedTime: z.string().optional().describe('The same in RFC 3339.'),
  LockedAt: z.number().int().describe('Unix seconds; 0 for never.'),
  LockedTime: z.string().optional().describe('The same in RFC 3339.'),
  VerifiedDeal: z.boolean(),
  Unlocked: z.boolean(),
  StoragePricePerEpoch: z.number(),
  StoragePrice: z.number(),
  VerifiedProviderCode: z.number().int().describe('A number of the service, as it is.'),
  StatusCode: z.number().int().describe('A number of the service, as it is.'),
  LockedFee: z.string().describe('Digits.'),
})

type DealDetail = z.output<typeof dealDetail>

export function detailOf({ source_file_upload_deal: deal }: WireDetail): DealDetail {
  const [created, locked] = [deal.created_at, deal.locked_at].map(timeOf)
  return {
    DealId: deal.deal_id,
    DealCid: deal.deal_cid,
    MessageCid: deal.message_cid,
    PieceCid: deal.piece_cid,
    Signature: deal.signature,
    SignatureType: deal.signature_type,
    PieceSizeFormat: deal.piece_size_format,
    Client: deal.client,
    ClientCollateralFormat: deal.client_collateral_format,
    Provider: deal.provider,
    ProviderTag: deal.provider_tag,
    ProviderCollateralFormat: deal.provider_collateral_format,
    NetworkName: deal.network_name,
    IpfsUrl: deal.ipfs_url,
    FileName: deal.file_name,
    WCid: deal.w_cid,
    Height: deal.height,
    StartHeight: deal.start_height,
    EndHeight: deal.end_height,
    CreatedAt: deal.created_at,
    ...(created !== undefined && { CreatedTime: created }),
    LockedAt: deal.locked_at,
    ...(locked !== undefined && { LockedTime: locked }),
    VerifiedDeal: deal.verified_deal,
    Unlocked: deal.unlocked,
    StoragePricePerEpoch: deal.storage_price_per_epoch,
    StoragePrice: deal.storage_price,
    VerifiedProviderCode: deal.verified_provider,
    StatusCode: deal.status,
    LockedFee: deal.locked_fee,
  }
}

/** Unix seconds in RFC 3339; undefined for 0, which stands for never. */
export function timeOf(seconds: number): string | undefined {
  return seconds > 0 && seconds < 1e11 ? `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z` : undefined
}
