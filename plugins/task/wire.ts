import { lenient, redact, S3Error, type ServiceAnswer, TokenRefused } from 'dealgate'
import { z } from 'zod'

/** Errors for what only the call can name. */
export interface Refusals {
  /** The platform does not know what the path names. */
  missing?(): Error
  /** The account may not do this. Default ProviderRoleRequired. */
  forbidden?(message: string): S3Error
}

/** Envelope of every answer. Code and status words differ in case between deployments. */
const envelope = z.looseObject({ status: lenient.text, message: lenient.text, data: z.unknown().optional() })

type Envelope = z.output<typeof envelope>

/** Longest part of a text of the platform that a message quotes, characters. */
const QUOTED = 500

/**
 * The envelope of an answer that reports success.
 * @throws TokenRefused, and S3Error for a refusal: InvalidArgument, PlatformRefused, SlowDown, UpstreamUnavailable,
 * UpstreamBadResponse, or one of `refusals`
 */
export function successOf(answer: ServiceAnswer, refusals: Refusals = {}): Envelope {
  const said = envelope.safeParse(answer.json).data
  const message = said?.message || said?.status || ''
  const { status } = answer
  if (status >= 200 && status < 300) {
    if (!said) throw badResponse('The task platform gave an answer that is not JSON.')
    if (said.status === '' || said.status.toLowerCase() === 'success') return said
    throw refusalOf(message, refusals)
  }
  if (status === 429) {
    const wait = answer.retryAfter
    throw new S3Error('SlowDown', {
      message: quote(message) || 'The task platform refuses further requests for now.',
      ...(wait !== undefined && /^\d{1,6}$/.test(wait) && { headers: { 'retry-after': wait } }),
    })
  }
  if (status >= 500) {
    throw new S3Error('UpstreamUnavailable', {
      message: `The task platform cannot do this now: ${quote(message) || status}`,
      headers: { 'retry-after': '2' },
    })
  }
  if (!said) throw badResponse(`The task platform answered with status ${status}, which this server does not know.`)
  if (status === 401) throw new TokenRefused(quote(message))
  if (status === 403) throw (refusals.forbidden ?? roleRequired)(quote(message))
  if (status === 404) throw refusals.missing?.() ?? refused(message)
  if (status === 400 || status === 413 || status === 415 || status === 422) throw invalid(message)
  throw refused(message)
}

/** Classifies a refusal that comes with status 200, as some deployments send it. */
function refusalOf(message: string, refusals: Refusals): Error {
  if (/\btoken\b|unauthori[sz]ed|\bexpired\b|\bpassword\b|credential|sign in|log ?in/i.test(message))
    return new TokenRefused(quote(message))
  if (/not found|no such|does not exist/i.test(message)) return refusals.missing?.() ?? refused(message)
  if (/permission|forbidden|not (?:the|your|a) /i.test(message)) {
    return (refusals.forbidden ?? roleRequired)(quote(message))
  }
  return refused(message)
}

/** The data of a successful answer in its form. Throws UpstreamBadResponse, and what `successOf` throws. */
export function dataOf<T>(answer: ServiceAnswer, schema: z.ZodType<T>, refusals?: Refusals): T {
  return inForm(successOf(answer, refusals).data, schema)
}

/** Throws UpstreamBadResponse. */
export function inForm<T>(value: unknown, schema: z.ZodType<T>): T {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw badResponse('The task platform gave an unexpected answer.')
}

function refused(message: string): S3Error {
  return new S3Error('PlatformRefused', {
    status: 409,
    message: `The task platform refuses this: ${quote(message) || 'it gives no reason'}`,
  })
}

function invalid(message: string): S3Error {
  return new S3Error('InvalidArgument', { message: `The task platform refuses this: ${quote(message)}` })
}

function roleRequired(message: string): S3Error {
  return new S3Error('ProviderRoleRequired', {
    ...(message !== '' && { message: `The task platform says: ${message}` }),
  })
}

function badResponse(message: string): S3Error {
  return new S3Error('UpstreamBadResponse', { message })
}

/** The platform's own text, for a message. */
function quote(text: string): string {
  return redact(text.trim().slice(0, QUOTED))
}

/**
 * Fields that requests to the task platform have, and the names under which clients of such platforms send them. Some
 * deployments read one spelling and some another, so that all of them are sent.
 */
const SPELLINGS = {
  Email: ['email'],
  Password: ['password'],
  KeyName: ['key_name'],
  ApiKey: ['apikey'],
  AccessToken: ['access_token'],
  TaskName: ['task_name'],
  CuratedDataset: ['curated_dataset'],
  Description: ['description'],
  IsPublic: ['is_public'],
  Type: ['type', 'verified_type'],
  MinerId: ['miner_id'],
  MinPrice: ['min_price'],
  MaxPrice: ['max_price'],
  Tags: ['tags'],
  ExpireDays: ['expire_days', 'expired_days'],
  BidMode: ['bid_mode', 'auto_bid'],
  FastRetrieval: ['fast_retrieval'],
  SourceId: ['source_id'],
  Duration: ['duration'],
  Uuid: ['uuid'],
  File: ['file'],
} as const

type FieldName = keyof typeof SPELLINGS

export const FIELD_NAMES = Object.keys(SPELLINGS) as [FieldName, ...FieldName[]]

/** Fields of a request as name and value, in every spelling, or in the configured one. Leaves out undefined values. */
export function spelled(
  values: Partial<Record<FieldName, string | undefined>>,
  configured: Partial<Record<FieldName, string | undefined>>,
): [name: string, value: string][] {
  return FIELD_NAMES.flatMap((field) => {
    const value = values[field]
    return value === undefined ? [] : namesOf(field, configured).map((name): [string, string] => [name, value])
  })
}

/** Names of a field on the wire. */
export function namesOf(
  field: FieldName,
  configured: Partial<Record<FieldName, string | undefined>>,
): readonly string[] {
  const own = configured[field]
  return own === undefined ? SPELLINGS[field] : [own]
}

const { text, nullableText, numeric, flag } = lenient

/** Any other value: null. */
const nullableNumber = numeric.nullable().catch(null)

/** Any other value: 0. */
const count = numeric.pipe(z.int().nonnegative()).catch(0)

/** Lists the items in `value[name]`, in one of its names, or in `value` itself: deployments differ. Null is no item. */
export function listOf<T>(item: z.ZodType<T>, ...names: readonly string[]): z.ZodType<T[]> {
  const pick = (value: unknown): unknown => {
    if (Array.isArray(value)) return value
    if (value === null || value === undefined || value === '') return []
    const object = value as Readonly<Record<string, unknown>>
    const name = names.find((one) => typeof object === 'object' && one in object)
    return name === undefined ? value : (object[name] ?? [])
  }
  return z.unknown().optional().transform(pick).pipe(z.array(item)) as unknown as z.ZodType<T[]>
}

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

const wireBid = z.object({
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
