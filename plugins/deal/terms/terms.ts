import { formatAmount, parseAmount, S3Error } from 'dealgate/plugin'
import { z } from 'zod'

/**
 * Numbers, flags and amounts of money in the documents of this plugin. An amount is text everywhere, because a JSON
 * number is a double, which would round it. A count is an integer everywhere.
 */

/** Fil, in the fewest digits that are exact: `0.000005`. */
const AMOUNT = String.raw`^\d+(\.\d{1,18})?$`

/** The form that `parseAmount` accepts: also `5e-7`. */
export const STATED_AMOUNT = String.raw`^\d{1,24}(\.\d{1,60})?([eE][+-]?\d{1,2})?$`

/** An amount that this server computed. */
export const amount = z.string().meta({ pattern: AMOUNT })

/** An amount in the gateway's own form; '' when it gives none. */
export const reportedAmount = z.string().meta({ pattern: `${STATED_AMOUNT}|^$` })

/** An amount that a client states; checked by `readTerms`. */
export const statedAmount = z.string().meta({ pattern: STATED_AMOUNT })

/** An integer that a client states. Other values pass, so that `readTerms` can report all violations at once. */
export function statedInteger(minimum: number, maximum: number) {
  return z
    .custom<number | string>((value) => typeof value === 'number' || typeof value === 'string', 'must be a number')
    .meta({ type: 'integer', minimum, maximum })
}

/** A flag that a client states; other values pass likewise. */
export const statedFlag = z
  .custom<boolean | string>((value) => typeof value === 'boolean' || typeof value === 'string', 'must be true or false')
  .meta({ type: 'boolean' })

export interface DealTerms {
  /** Id of the storage provider, such as `f01000`. */
  readonly minerId: string
  /** Decimal, fil per epoch for the whole piece, in the fewest digits that are exact. */
  readonly price: string
  /** Epochs of the network (30 s each on Filecoin). */
  readonly duration: number
  readonly verifiedDeal: boolean
  readonly fastRetrieval: boolean
}

/** Terms as a source states them: partial, and not parsed. */
export interface StatedTerms {
  readonly MinerId?: string | undefined
  readonly Price?: string | number | undefined
  readonly DurationEpochs?: string | number | undefined
  readonly VerifiedDeal?: string | boolean | undefined
  readonly FastRetrieval?: string | boolean | undefined
  /** Confirms the Price, however high it is above what the provider asks. */
  readonly ConfirmPrice?: string | boolean | undefined
}

/** About ten years of Filecoin. */
const MAX_DURATION = 10_512_000

/** Members of a document with terms. Their values are checked by `readTerms`, which reports all violations at once. */
export const statedTerms = {
  MinerId: z.string().optional().describe('Id of the storage provider.'),
  Price: statedAmount
    .optional()
    .describe('Decimal, as text: fil per epoch for the whole piece, up to 18 digits after the point.'),
  DurationEpochs: statedInteger(1, MAX_DURATION)
    .optional()
    .describe('For how many epochs: a whole number. On Filecoin an epoch is 30 s, a day 2880.'),
  VerifiedDeal: statedFlag.optional().describe('Spend DataCap of the wallet instead of the full price. Default false.'),
  FastRetrieval: statedFlag.optional().describe('Ask the provider to keep an unsealed copy. Default true.'),
  ConfirmPrice: statedFlag
    .optional()
    .describe('Pay the Price though it is far above what the provider asks. Default false.'),
}

/** Other names of these members, from the gateway's own interface. */
export const termAliases = { Duration: 'DurationEpochs', FastRetrival: 'FastRetrieval' } as const

export const termNames: readonly (keyof StatedTerms)[] = [
  'MinerId',
  'Price',
  'DurationEpochs',
  'VerifiedDeal',
  'FastRetrieval',
]

/** Ids consist of letters and digits, because public gateways pass ids to a shell (filswan/fs3 cmd/web-handlers.go). */
const MINER_ID = /^[a-zA-Z0-9]{2,64}$/

/** Parses complete terms. Throws DealTermsInvalid with all problems in `Violations`. */
export function readTerms(stated: StatedTerms): DealTerms {
  const violations: string[] = []
  const refuse = (text: string) => {
    violations.push(text)
    return undefined
  }
  const minerId = readMinerId(stated.MinerId, refuse)
  const price = readPrice(stated.Price, refuse)
  const duration = readDuration(stated.DurationEpochs, refuse)
  const verifiedDeal = readFlag('VerifiedDeal', stated.VerifiedDeal, false, refuse)
  const fastRetrieval = readFlag('FastRetrieval', stated.FastRetrieval, true, refuse)
  if (
    minerId === undefined ||
    price === undefined ||
    duration === undefined ||
    verifiedDeal === undefined ||
    fastRetrieval === undefined
  )
    throw termsInvalid(violations)
  return { minerId, price, duration, verifiedDeal, fastRetrieval }
}

/** Problems of the terms that are stated; terms that are not stated are ignored. */
export function violationsOf(stated: StatedTerms): readonly string[] {
  const violations: string[] = []
  const refuse = (text: string) => {
    violations.push(text)
    return undefined
  }
  if (stated.MinerId !== undefined) readMinerId(stated.MinerId, refuse)
  if (stated.Price !== undefined) readPrice(stated.Price, refuse)
  if (stated.DurationEpochs !== undefined) readDuration(stated.DurationEpochs, refuse)
  readFlag('VerifiedDeal', stated.VerifiedDeal, false, refuse)
  readFlag('FastRetrieval', stated.FastRetrieval, true, refuse)
  readFlag('ConfirmPrice', stated.ConfirmPrice, false, refuse)
  return violations
}

export function termsInvalid(violations: readonly string[]): S3Error {
  return new S3Error('DealTermsInvalid', {
    message: `The terms of the deal are not valid: ${violations.join(' ')}`,
    fields: { Violations: violations },
  })
}

export function hasTerms(stated: StatedTerms): boolean {
  return termNames.some((name) => stated[name] !== undefined)
}

/**
 * Valid terms with each value in its own type, as answers and records hold them: earlier versions stored them as they
 * were sent.
 */
export function inOwnTypes<T extends StatedTerms>(terms: T): T {
  const { Price, DurationEpochs, VerifiedDeal, FastRetrieval, ConfirmPrice } = terms
  return {
    ...terms,
    ...(Price !== undefined && { Price: String(Price) }),
    ...(DurationEpochs !== undefined && { DurationEpochs: Number(DurationEpochs) }),
    ...(VerifiedDeal !== undefined && { VerifiedDeal: isTrue(VerifiedDeal) }),
    ...(FastRetrieval !== undefined && { FastRetrieval: isTrue(FastRetrieval) }),
    ...(ConfirmPrice !== undefined && { ConfirmPrice: isTrue(ConfirmPrice) }),
  }
}

/** False also for values other than true and false, which `readTerms` and `violationsOf` refuse. */
export function isTrue(value: string | boolean | undefined): boolean {
  return String(value).toLowerCase() === 'true'
}

/** Attofil for the whole duration. */
export function costOf(terms: DealTerms): bigint {
  return (parseAmount(terms.price) ?? 0n) * BigInt(terms.duration)
}

type Refuse = (text: string) => undefined

function readMinerId(value: string | undefined, refuse: Refuse): string | undefined {
  if (value === undefined || value === '') return refuse('MinerId is missing: name the storage provider.')
  return MINER_ID.test(value) ? value : refuse('MinerId must be 2 to 64 letters and digits, such as f01000.')
}

function readPrice(value: string | number | undefined, refuse: Refuse): string | undefined {
  if (value === undefined || value === '') return refuse('Price is missing: say how many fil the deal costs per epoch.')
  const amount = parseAmount(String(value))
  return amount === undefined
    ? refuse('Price must be a decimal number of fil that is not negative, with at most 18 digits after the point.')
    : formatAmount(amount)
}

function readDuration(value: string | number | undefined, refuse: Refuse): number | undefined {
  if (value === undefined || value === '') return refuse('DurationEpochs is missing: say for how many epochs.')
  const epochs = /^\d{1,9}$/.test(String(value)) ? Number(value) : 0
  return epochs >= 1 && epochs <= MAX_DURATION
    ? epochs
    : refuse(`DurationEpochs must be a whole number from 1 to ${MAX_DURATION}.`)
}

function readFlag(
  name: 'VerifiedDeal' | 'FastRetrieval' | 'ConfirmPrice',
  value: string | boolean | undefined,
  fallback: boolean,
  refuse: Refuse,
): boolean | undefined {
  if (value === undefined || value === '') return fallback
  const text = String(value).toLowerCase()
  return text === 'true' || text === 'false' ? text === 'true' : refuse(`${name} must be true or false.`)
}

/** Quotient, rounded up, so that a price never falls below the cost. */
export function divideUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by
}

export const days = z
  .number()
  .int()
  .min(0)
  .max(2_000_000)
  .optional()
  .describe('For how many days the bytes stay; 0 or absent: for good.')

export const tier = z.enum(['Standard', 'Bulk', 'Expedited']).optional().describe('How urgent it is; default Standard.')
