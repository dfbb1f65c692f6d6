import { z } from 'zod'
import { count, flag, listOf, nullableNumber, nullableText, text } from './members.js'

export const wireProvider = z.object({
  miner_id: text.pipe(z.string().min(1)),
  location: text,
  price: text,
  verified_price: text,
  min_piece_size: text,
  max_piece_size: text,
  offline_deal_available: flag,
  score: count,
  status: text,
  contact_info: text,
  update_time_str: text,
})
export type WireProvider = z.output<typeof wireProvider>

export const wireTask = z.object({
  task_id: nullableNumber,
  uuid: nullableText,
  task_name: text,
  description: text,
  type: nullableText,
  status: text,
  is_public: flag,
  tags: z.union([text, z.array(text).transform((tags) => tags.join(','))]),
  min_price: nullableText,
  max_price: nullableText,
  miner_id: nullableText,
  expire_days: nullableNumber,
  task_file_name: text,
  created_on: text,
  bid_count: nullableNumber,
  deal_count: nullableNumber,
  successful_deal_count: nullableNumber,
})
export type WireTask = z.output<typeof wireTask>

export const wireBid = z.object({
  bid_id: nullableNumber,
  contact_info: text,
  created_on: text,
  expire_days: nullableNumber,
  min_piece_size: text,
  price: text,
  proposal: text,
  status: text,
  task_id: nullableNumber,
  username: text,
  won_on: nullableText,
  platform_user_info: z.unknown().optional(),
  user_info: z.unknown().optional(),
})
export type WireBid = z.output<typeof wireBid>

export const wireBidder = z.object({
  status: text,
  registered_on: text,
  headline: nullableText,
  summary: nullableText,
  miners: listOf(wireProvider).catch([]),
})

export const wireDeal = z.object({
  id: nullableNumber,
  deal_cid: nullableText,
  file_path: nullableText,
  file_source_url: text,
  md5_origin: nullableText,
  miner_id: nullableNumber,
  note: nullableText,
  start_epoch: nullableNumber,
  status: text,
  task_id: nullableNumber,
  user_id: nullableNumber,
  created_at: text,
  updated_at: text,
})
export type WireDeal = z.output<typeof wireDeal>

export const wireDetail = z.object({
  task: wireTask,
  bid: listOf(wireBid, 'bid', 'bids'),
  deal: listOf(wireDeal, 'deal', 'deals'),
  average_bid: text,
  bid_count: count,
  deal_complete_rate: text,
  total_deal_count: count,
  miner: z.unknown().optional(),
  poster: z.object({ complete_task_count: count, contact_info: text, member_since: text }).nullish().catch(null),
})
export type WireDetail = z.output<typeof wireDetail>

export const wireCreated = z.object({ filename: text, uuid: nullableText })

export const wireApiKey = z.object({
  access_token: text.pipe(z.string().min(1)),
  apikey: text.pipe(z.string().min(1)),
  created_on: text,
  jwt: text,
  key_name: text,
  status: text,
})
