import { lenient, redact, S3Error, type ServiceAnswer, TokenRefused } from 'dealgate'
import { z } from 'zod'

const { text, nullableText, numeric, flag } = lenient

/** Any other value: 0. */
export const count = numeric.pipe(z.int()).catch(0)

/** Any other value: 0; with a fraction. */
const amount = numeric.catch(0)

/** A list; null and a missing one are empty. */
function listOf<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z
    .array(item)
    .nullish()
    .transform((items) => items ?? []) as unknown as z.ZodType<T[]>
}

/** Errors for what only the call can name. */
export interface Refusals {
  /** The service does not know what the request names. */
  missing?(): Error
  /** The service has something else in its place. */
  conflict?(message: string): S3Error
}

/** Envelope of every answer. `code` is a number, a text or absent, and success without `status` is known, too. */
const envelope = z.looseObject({ status: text, code: text, message: text, data: z.unknown().optional() })

type Envelope = z.output<typeof envelope>

/** Codes and texts of bad parameters, which come with status 500, too. */
const BAD_PARAMETER =
  /^(?:param cannot be null|(?:wrong )?param data type|param value is invalid|invalid param value|params? parse)/i
const isBadParameter = ({ code, message }: Envelope) => /^1000[1-4]$/.test(code) || BAD_PARAMETER.test(message)
const NOT_FOUND = /not exists?\b|does not exist|not found|no such/i

/** Longest part of a text of the service that a message quotes, characters. */
const QUOTED = 500

/**
 * The envelope of an answer that reports success.
 * @throws TokenRefused, and S3Error for a refusal: InvalidArgument, AccessDenied, PaymentRefused, EntityTooLarge,
 * SlowDown, UpstreamUnavailable, UpstreamBadResponse, or one of `refusals`
 */
export function successOf(answer: ServiceAnswer, refusals: Refusals = {}): Envelope {
  const { status } = answer
  const said = envelope.safeParse(answer.json).data
  if (status >= 200 && status < 300) {
    if (!said) throw badResponse('The payment service gave an answer that is not JSON.')
    if (said.status === '' || said.status.toLowerCase() === 'success') return said
    throw refusalOf(400, said, refusals)
  }
  if (!said) {
    if (status >= 500 || status === 429) throw busy(answer, '')
    throw badResponse(`The payment service answered with status ${status}, which this server does not know.`)
  }
  if (status === 429) throw busy(answer, said.message)
  if (status >= 500 && !isBadParameter(said)) throw busy(answer, said.message)
  throw refusalOf(status, said, refusals)
}

function refusalOf(status: number, said: Envelope, refusals: Refusals): Error {
  const message = quote(said.message)
  if (status === 401) return new TokenRefused(message)
  if (status === 403) return new S3Error('AccessDenied', { message: `The payment service says: ${message}` })
  if (status === 404 || NOT_FOUND.test(said.message)) return refusals.missing?.() ?? refused(message)
  if (status === 409 || /mint info exists/i.test(said.message)) return refusals.conflict?.(message) ?? refused(message)
  if (status === 413) return new S3Error('EntityTooLarge', { message: `The payment service says: ${message}` })
  if (status === 400 || status === 415 || status === 422 || isBadParameter(said))
    return new S3Error('InvalidArgument', { message: `The payment service refuses this: ${message}` })
  return refused(message)
}

function busy({ status, retryAfter }: ServiceAnswer, message: string): S3Error {
  const wait = retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? retryAfter : '2'
  return new S3Error(status === 429 ? 'SlowDown' : 'UpstreamUnavailable', {
    message: `The payment service cannot do this now: ${quote(message) || status}`,
    headers: { 'retry-after': wait },
  })
}

/** The data of a successful answer in its form. Throws UpstreamBadResponse, and as `successOf`. */
export function dataOf<T>(answer: ServiceAnswer, schema: z.ZodType<T>, refusals?: Refusals): T {
  const read = schema.safeParse(successOf(answer, refusals).data)
  if (read.success) return read.data
  throw badResponse('The payment service gave an unexpected answer.')
}

function refused(message: string): S3Error {
  return new S3Error('PaymentRefused', {
    status: 409,
    message: `The payment service refuses this: ${message || 'it gives no reason'}`,
  })
}

export function badResponse(message: string): S3Error {
  return new S3Error('UpstreamBadResponse', { message })
}

function quote(said: string): string {
  return redact(said.trim().slice(0, QUOTED))
}

/** Address of a wallet. */
export const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be 0x and 40 hexadecimal digits')
  .describe('0x and 40 hexadecimal digits.')

/** A path of the interface: `apiPath('billing')`. */
export function apiPath(...segments: readonly string[]): readonly string[] {
  return ['api', 'v1', ...segments]
}

const both = {
  gas_limit: count,
  lock_time: count,
  pay_multiply_factor: amount,
  mint_contract_address: text,
  payment_contract_address: text,
  payment_recipient_address: text,
  stable_address: text,
}

const variantA = z.object({
  ...both,
  chain_name: text,
  dao_contract_address: text,
  dex_address: text,
  stable_wrapped_pool_contract: text,
  dao_threshold: count,
  storage_coin_price: amount,
})

const variantB = z.object(both)

export type WireParams =
  | ({ readonly variant: 'a' } & z.output<typeof variantA>)
  | ({ readonly variant: 'b' } & z.output<typeof variantB>)

/** System parameters, with the variant that their names show: those of variant B are in upper case. */
export const wireParams = z.record(z.string(), z.unknown()).transform((params): WireParams => {
  if (!('PAYMENT_CONTRACT_ADDRESS' in params)) return { variant: 'a', ...variantA.parse(params) }
  const folded = Object.fromEntries(Object.entries(params).map(([name, value]) => [name.toLowerCase(), value]))
  return { variant: 'b', ...variantB.parse(folded) }
})

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

const wireOfflineDeal = z.object({
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

const wireUpload = z.object({
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
  /** Of the request for it, '' for none; null where the service knows no such keys. */
  idempotency_key: nullableText,
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

export const wireMint = z.object({
  id: count,
  source_file_upload_id: count,
  nft_tx_hash: text,
  mint_address: text,
  token_id: text,
  create_at: count,
  update_at: count,
})

const wireBill = z.object({
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
