import { type AnswerPart, answerParts, answerShape, lenient, listed, member } from 'dealgate'
import { z } from 'zod'

const { text, nullableText, count, amount, flag } = answerParts

/** Unix seconds in RFC 3339; undefined for 0, which stands for never. */
function timeOf(seconds: number): string | undefined {
  return seconds > 0 && seconds < 1e11 ? `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z` : undefined
}

const SECONDS = 'Unix seconds; 0 for never.'
const time = {
  read: lenient.count.transform(timeOf),
  shown: z.string().optional().describe('The same in RFC 3339.'),
}
const positive = lenient.count.pipe(z.int().positive())
const id = { read: positive, shown: z.number().int() }
const total = member('total_record_count', count, 'Records that meet the filter, on all pages.')

export const offlineDeal = answerShape({
  Id: member('id', count, 'Number of this offline deal, by which its log is read.'),
  CarFileId: member('car_file_id', count),
  DealCid: member('deal_cid', text),
  DealId: member('deal_id', count, 'Number of the deal on the chain; 0 while there is none.'),
  MinerId: member('miner_id', count),
  MinerFid: member('miner_fid', text),
  Verified: member('verified', flag),
  StartEpoch: member('start_epoch', count),
  SenderWalletId: member('sender_wallet_id', count),
  Status: member('status', text),
  Note: member('note', nullableText),
  OnChainStatus: member('on_chain_status', text),
  TxHashUnlock: member('tx_hash_unlock', nullableText),
  UnlockAt: member('unlock_at', count, SECONDS),
  UnlockTime: member('unlock_at', time),
  CreateAt: member('create_at', count, SECONDS),
  CreateTime: member('create_at', time),
  UpdateAt: member('update_at', count, SECONDS),
  UpdateTime: member('update_at', time),
})

export type OfflineDeal = z.output<typeof offlineDeal.shown>

const ofUpload = {
  SourceFileUploadId: member('source_file_upload_id', id),
  CarFileId: member('car_file_id', count, '0 while it is in no CAR.'),
  FileName: member('file_name', text),
  FileSize: member('file_size', count, 'Bytes.'),
  UploadAt: member('upload_at', count, SECONDS),
  UploadTime: member('upload_at', time),
  DurationDays: member('duration', count),
  PinStatus: member('pin_status', text),
  PayloadCid: member('payload_cid', text, 'Of the CAR; empty while there is none.'),
  Status: member('status', text),
  TokenId: member('token_id', text),
  MintAddress: member('mint_address', text),
  NftTxHash: member('nft_tx_hash', text),
  OfflineDeals: member('offline_deal', listed(offlineDeal, 'OfflineDeal')),
}

export const upload = answerShape(ofUpload)

export type ShownUpload = z.output<typeof upload.shown>

export const uploads = answerShape({
  Uploads: member('source_file_upload', listed(upload, 'Upload')),
  TotalRecordCount: total,
})

const keyedUpload = answerShape({
  ...ofUpload,
  IdempotencyKey: member(
    'idempotency_key',
    nullableText,
    'Of the request for it, empty for none; null where the service knows no such keys.',
  ),
})

export type KeyedUpload = z.output<typeof keyedUpload.shown>

export const keyedUploads = answerShape({ Uploads: member('source_file_upload', listed(keyedUpload, 'Upload')) })

export const bill = answerShape({
  PayId: member('pay_id', count),
  PayTxHash: member('pay_tx_hash', text),
  PayAmount: member('pay_amount', text, 'Digits, in the smallest unit of the token.'),
  UnlockAmount: member('unlock_amount', text, 'The same; empty while the payment is locked.'),
  FileName: member('file_name', text),
  PayloadCid: member('payload_cid', text),
  PayAt: member('pay_at', count, SECONDS),
  PayTime: member('pay_at', time),
  UnlockAt: member('unlock_at', count, SECONDS),
  UnlockTime: member('unlock_at', time),
  Deadline: member('deadline', count, SECONDS),
  DeadlineTime: member('deadline', time),
  NetworkName: member('network_name', text),
  TokenName: member('token_name', text),
})

export const bills = answerShape({
  Records: member('billing', listed(bill, 'Record')),
  TotalRecordCount: total,
})

const NUMBER = 'A number of the service, as it is.'

const dealDetail = answerShape({
  DealId: member('deal_id', count, '0 for an upload without a deal.'),
  DealCid: member('deal_cid', text),
  MessageCid: member('message_cid', text),
  PieceCid: member('piece_cid', text),
  Signature: member('signature', text),
  SignatureType: member('signature_type', text),
  PieceSizeFormat: member('piece_size_format', text),
  Client: member('client', text),
  ClientCollateralFormat: member('client_collateral_format', text),
  Provider: member('provider', text),
  ProviderTag: member('provider_tag', text),
  ProviderCollateralFormat: member('provider_collateral_format', text),
  NetworkName: member('network_name', text),
  IpfsUrl: member('ipfs_url', text),
  FileName: member('file_name', text),
  WCid: member('w_cid', text),
  Height: member('height', count, 'Epoch of the chain.'),
  StartHeight: member('start_height', count),
  EndHeight: member('end_height', count, 'Epoch at which the deal expires.'),
  CreatedAt: member('created_at', count, SECONDS),
  CreatedTime: member('created_at', time),
  LockedAt: member('locked_at', count, SECONDS),
  LockedTime: member('locked_at', time),
  VerifiedDeal: member('verified_deal', flag),
  Unlocked: member('unlocked', flag),
  StoragePricePerEpoch: member('storage_price_per_epoch', amount),
  StoragePrice: member('storage_price', amount),
  VerifiedProviderCode: member('verified_provider', count, NUMBER),
  StatusCode: member('status', count, NUMBER),
  LockedFee: member('locked_fee', text, 'Digits.'),
})

export const detail = answerShape({
  DaoThreshold: member('dao_threshold', count),
  Deal: member('source_file_upload_deal', dealDetail),
})

const providerState = {
  read: lenient.text.transform((message) => /^Provider state: (.+)$/.exec(message)?.[1]),
  shown: z.string().optional(),
}

export const dealLog = answerShape({
  Entries: member(
    'offline_deal_log',
    listed(
      answerShape({
        Id: member('id', count),
        OfflineDealId: member('offline_deal_id', count),
        OnChainStatus: member('on_chain_status', text),
        OnChainMessage: member('on_chain_message', text),
        ProviderState: member(
          'on_chain_message',
          providerState,
          'The state that the message names behind `Provider state: `.',
        ),
        CreateAt: member('create_at', count, 'Unix seconds.'),
        CreateTime: member('create_at', time),
      }),
      'Entry',
    ),
  ),
})

export const payment = answerShape({
  WCid: member('w_cid', text),
  PayAmount: member('pay_amount', text, 'Digits, in the smallest unit of the token; empty while nothing is paid.'),
  PayTxHash: member('pay_tx_hash', text),
  TokenAddress: member('token_address', text),
})

export const mint = answerShape({
  Id: member('id', count),
  SourceFileUploadId: member('source_file_upload_id', count),
  NftTxHash: member('nft_tx_hash', text),
  MintAddress: member('mint_address', text),
  TokenId: member('token_id', text),
  CreateAt: member('create_at', count, 'Unix seconds.'),
  CreateTime: member('create_at', time),
  UpdateAt: member('update_at', count, 'Unix seconds.'),
  UpdateTime: member('update_at', time),
})

/** The answer to an upload. */
export const uploaded = z.object({
  source_file_upload_id: positive,
  payload_cid: lenient.text.pipe(z.string().min(1)),
  ipfs_url: lenient.text,
  file_size: lenient.count,
  w_cid: lenient.text,
  status: lenient.nullableText,
})

/** Parameters of services with a sign-in alone. */
const ofSignedIn = {
  ChainName: member('chain_name', text, 'Name of the chain environment, which a sign-in names as Network.'),
  DaoContractAddress: member('dao_contract_address', text),
  DexAddress: member('dex_address', text),
  StableWrappedPoolContract: member('stable_wrapped_pool_contract', text),
  DaoThreshold: member('dao_threshold', count),
  StorageCoinPrice: member('storage_coin_price', amount),
}

const openConfig = answerShape({
  PaymentContractAddress: member('payment_contract_address', text),
  MintContractAddress: member('mint_contract_address', text),
  PaymentRecipientAddress: member('payment_recipient_address', text),
  StableAddress: member('stable_address', text),
  GasLimit: member('gas_limit', count),
  LockTime: member('lock_time', count, 'Days.'),
  PayMultiplyFactor: member('pay_multiply_factor', amount),
})

const signedInConfig = answerShape(ofSignedIn)

const config = z.object({
  Variant: z.enum(['A', 'B']),
  ...openConfig.shown.shape,
  ...signedInConfig.shown.partial().shape,
})

/** System parameters, with the variant that their names show: those of services without a sign-in are in upper case. */
export const systemConfig: AnswerPart<typeof config> = {
  shown: config,
  read: z.record(z.string(), z.unknown()).transform((params): z.output<typeof config> => {
    if (!('PAYMENT_CONTRACT_ADDRESS' in params))
      return { Variant: 'A', ...openConfig.read.parse(params), ...signedInConfig.read.parse(params) }
    const folded = Object.fromEntries(Object.entries(params).map(([name, value]) => [name.toLowerCase(), value]))
    return { Variant: 'B', ...openConfig.read.parse(folded) }
  }),
}

export const hostInfo = answerShape({
  Version: member('version', text),
  OperatingSystem: member('operating_system', text),
  Architecture: member('architecture', text),
  CpuNumber: member('cpu_number', count),
})
