import { z } from 'zod'
import { amount, count, flag, listOf, nullableText, text } from './members.js'

export const wireNonce = z.object({ nonce: text })

export const wireSession = z.object({ jwt_token: z.string().min(1) })

/** Texts that are not empty. */
const id = count.pipe(z.int().positive())

export const wireUploaded = z.object({
  source_file_upload_id: id,
  payload_cid: text.pipe(z.string().min(1)),
  ipfs_url: text,
  file_size: count,
  w_cid: text,
  status: nullableText,
})
export type WireUploaded = z.output<typeof wireUploaded>

export const wireOfflineDeal = z.object({
  id: count,
  car_file_id: count,
  deal_cid: text,
  miner_id: count,
  verified: flag,
  start_epoch: count,
  sender_wallet_id: count,
  deal_id: count,
  status: text,
  note: nullableText,
  on_chain_status: text,
  tx_hash_unlock: nullableText,
  unlock_at: count,
  create_at: count,
  update_at: count,
  miner_fid: text,
})
export type WireOfflineDeal = z.output<typeof wireOfflineDeal>

export const wireUpload = z.object({
  source_file_upload_id: id,
  car_file_id: count,
  file_name: text,
  file_size: count,
  upload_at: count,
  duration: count,
  pin_status: text,
  payload_cid: text,
  status: text,
  token_id: text,
  mint_address: text,
  nft_tx_hash: text,
  offline_deal: listOf(wireOfflineDeal),
})
export type WireUpload = z.output<typeof wireUpload>

export const wireUploads = z.object({ source_file_upload: listOf(wireUpload), total_record_count: count })

export const wireDetail = z.object({
  dao_threshold: count,
  source_file_upload_deal: z.object({
    deal_id: count,
    deal_cid: text,
    message_cid: text,
    piece_cid: text,
    signature: text,
    signature_type: text,
    piece_size_format: text,
    client: text,
    client_collateral_format: text,
    provider: text,
    provider_tag: text,
    provider_collateral_format: text,
    network_name: text,
    ipfs_url: text,
    file_name: text,
    w_cid: text,
    height: count,
    start_height: count,
    end_height: count,
    created_at: count,
    locked_at: count,
    verified_deal: flag,
    unlocked: flag,
    storage_price_per_epoch: amount,
    storage_price: amount,
    verified_provider: count,
    status: count,
    locked_fee: text,
  }),
})
export type WireDetail = z.output<typeof wireDetail>

export const wireLog = z.object({
  offline_deal_log: listOf(
    z.object({
      id: count,
      offline_deal_id: count,
      on_chain_status: text,
      on_chain_message: text,
      create_at: count,
    }),
  ),
})

export const wirePayment = z.object({ w_cid: text, pay_amount: text, pay_tx_hash: text, token_address: text })
export type WirePayment = z.output<typeof wirePayment>

export const wireMint = z.object({
  id: count,
  source_file_upload_id: count,
  nft_tx_hash: text,
  mint_address: text,
  token_id: text,
  create_at: count,
  update_at: count,
})

export const wireBill = z.object({
  pay_id: count,
  pay_tx_hash: text,
  pay_amount: text,
  unlock_amount: text,
  file_name: text,
  payload_cid: text,
  pay_at: count,
  unlock_at: count,
  deadline: count,
  network_name: text,
  token_name: text,
})
export type WireBill = z.output<typeof wireBill>

export const wireBilling = z.object({ billing: listOf(wireBill), total_record_count: count })
