import { z } from 'zod'
import { S3Error } from '../../src/errors/s3-error.js'
import { formatAmount, parseAmount } from './amounts.js'

/** What a deal is made on. Plain JSON. */
export interface DealTerms {
  /** Id of the storage provider, such as `f01000`. */
  readonly minerId: string
  /** Decimal, fil per epoch for the whole piece, in as few digits as say it. */
  readonly price: string
  /** For how long, in epochs of the network (30 s each on Filecoin). */
  readonly duration: number
  readonly verifiedDeal: boolean
  readonly fastRetrieval: boolean
}

/** Terms as somebody wrote them down, unread: of some of them, anywhere. */
export interface StatedTerms {
  readonly MinerId?: string | undefined
  readonly Price?: string | number | undefined
  readonly DurationEpochs?: string | number | undefined
  readonly VerifiedDeal?: string | boolean | undefined
  readonly FastRetrieval?: string | boolean | undefined
}

/** Members of a document with terms. What they hold is looked at by `readTerms`, which tells everything that is wrong at once. */
export const statedTerms = {
  MinerId: z.string().optional().describe('Id of the storage provider.'),
  Price: z
    .union([z.string(), z.number()])
    .optional()
    .describe('Decimal: fil per epoch for the whole piece, up to 18 digits after the point.'),
  DurationEpochs: z
    .union([z.number(), z.string()])
    .optional()
    .describe('For how many epochs: a whole number. On Filecoin an epoch is 30 s, a day 2880.'),
  VerifiedDeal: z
    .union([z.boolean(), z.string()])
    .optional()
    .describe('Spend DataCap of the wallet instead of the full price. Default false.'),
  FastRetrieval: z
    .union([z.boolean(), z.string()])
    .optional()
    .describe('Ask the provider to keep an unsealed copy. Default true.'),
}

/** Other names of these members: those of the gateway's own interface. */
export const termAliases = { Duration: 'DurationEpochs', FastRetrival: 'FastRetrieval' } as const

export const termNames = Object.keys(statedTerms) as readonly (keyof StatedTerms)[]

/** About ten years of Filecoin. */
const MAX_DURATION = 10_512_000
/** Public gateways hand ids on to a shell (filswan/fs3 cmd/web-handlers.go): nothing but letters and digits gets there. */
const MINER_ID = /^[a-zA-Z0-9]{2,64}$/

/** Reads terms that are complete. Throws DealTermsInvalid with everything that is wrong with them in `Violations`. */
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

/** What is wrong with the terms that are stated; those that are not are left out of it. */
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
  name: 'VerifiedDeal' | 'FastRetrieval',
  value: string | boolean | undefined,
  fallback: boolean,
  refuse: Refuse,
): boolean | undefined {
  if (value === undefined || value === '') return fallback
  const text = String(value).toLowerCase()
  return text === 'true' || text === 'false' ? text === 'true' : refuse(`${name} must be true or false.`)
}
