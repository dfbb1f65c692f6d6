import { formatAmount, parseAmount } from 'dealgate/plugin'
import { z } from 'zod'
import { statedAmount, statedFlag, statedInteger, termsInvalid } from './terms.js'

export interface OfflineTerms {
  readonly taskName: string
  readonly curatedDataset: string
  readonly description: string
  /** Bids decide on the provider. */
  readonly isPublic: boolean
  readonly type: 'regular' | 'verified'
  /** The provider of a private task. */
  readonly minerId?: string
  /** Decimal, fil per GiB and epoch, in the fewest digits that are exact. */
  readonly minPrice: string
  readonly maxPrice: string
  readonly tags: readonly string[]
  readonly expireDays: number
  /** Bids are accepted without the owner; of a public task. */
  readonly autoBid?: boolean
  /** Epochs of the network. */
  readonly duration: number
  readonly fastRetrieval: boolean
}

const MAX_TAGS = 5
const MAX_EXPIRE_DAYS = 3650
const EXPIRE_DAYS = 7
/** What task platforms accept, and take by default, epochs. */
const MIN_DURATION = 518_400
const MAX_DURATION = 1_555_200
const DURATION = 1_512_000

/** Members of a document with terms; their values are checked by `readOfflineTerms`, which reports all violations. */
export const offlineMembers = {
  TaskName: z.string().max(128).optional().describe('Default: the name of the bucket.'),
  CuratedDataset: z.string().max(256).optional(),
  Description: z.string().max(1000).optional(),
  IsPublic: statedFlag
    .optional()
    .describe('Whether bids decide on the provider (`1`), or MinerId (`0`). Default: `0` if a MinerId is stated.'),
  Type: z.string().optional().describe('`regular` or `verified`. Default: regular.'),
  MinerId: z.string().optional().describe('Storage provider of a private task.'),
  MinPrice: statedAmount.optional().describe('Decimal, as text: fil per GiB and epoch. Default 0.'),
  MaxPrice: statedAmount.optional().describe('Decimal, as text: fil per GiB and epoch. Required: it bounds the cost.'),
  Tags: z.array(z.string().max(64)).optional().meta({ element: 'Tag' }).describe('At most five.'),
  ExpireDays: statedInteger(1, MAX_EXPIRE_DAYS)
    .optional()
    .describe('Days in which the task must find a provider. Default 7.'),
  AutoBid: statedFlag.optional().describe('Whether the best bid wins by itself. Required for a public task.'),
  DurationEpochs: statedInteger(MIN_DURATION, MAX_DURATION)
    .optional()
    .describe('For how many epochs. On Filecoin an epoch is 30 s, a day 2880. Default 1512000.'),
  FastRetrieval: statedFlag.optional().describe('Ask the provider to keep an unsealed copy. Default true.'),
}

const stated = z.strictObject(offlineMembers)
type StatedOfflineTerms = z.output<typeof stated>

export const offlineConfiguration = stated
  .optional()
  .describe('Terms that offline deals of the bucket are made on where the request states none.')

/**
 * Takes each term from the first source that states it. Throws DealTermsInvalid with all problems in `Violations`.
 * @param bucket names a task without a name
 */
export function readOfflineTerms(sources: readonly (StatedOfflineTerms | undefined)[], bucket: string): OfflineTerms {
  const violations: string[] = []
  const refuse = (text: string) => violations.push(text)
  const first = <Name extends keyof StatedOfflineTerms>(name: Name) =>
    sources.map((source) => source?.[name]).find((value) => value !== undefined && value !== '')
  const flag = (name: 'IsPublic' | 'AutoBid' | 'FastRetrieval') => {
    const value = first(name)
    if (value === undefined) return undefined
    const text = String(value).toLowerCase()
    if (!['true', 'false', '1', '0'].includes(text)) refuse(`${name} must be 1 or 0, true or false.`)
    return text === 'true' || text === '1'
  }
  const price = (name: 'MinPrice' | 'MaxPrice') => {
    const amount = parseAmount(String(first(name) ?? '0'))
    if (amount === undefined)
      refuse(`${name} must be a decimal number of fil that is not negative, with at most 18 digits after the point.`)
    return amount ?? 0n
  }
  const whole = (name: 'ExpireDays' | 'DurationEpochs', least: number, most: number, fallback: number) => {
    const text = String(first(name) ?? fallback)
    const value = /^\d{1,9}$/.test(text) ? Number(text) : -1
    if (value < least || value > most) refuse(`${name} must be a whole number from ${least} to ${most}.`)
    return value
  }
  const minerId = first('MinerId')
  const isPublic = flag('IsPublic') ?? minerId === undefined
  const autoBid = flag('AutoBid')
  const type = String(first('Type') ?? 'regular').toLowerCase()
  const [minPrice, maxPrice] = [price('MinPrice'), price('MaxPrice')]
  const tags = first('Tags') ?? []
  if (type !== 'regular' && type !== 'verified') refuse('Type must be regular or verified.')
  if (!isPublic && minerId === undefined) refuse('MinerId is missing: a private task names its storage provider.')
  if (isPublic && minerId !== undefined) refuse('MinerId belongs to a private task: state IsPublic 0, or no MinerId.')
  if (minerId !== undefined && !/^[a-zA-Z0-9]{2,64}$/.test(minerId))
    refuse('MinerId must be 2 to 64 letters and digits, such as f01000.')
  if (isPublic && autoBid === undefined) refuse('AutoBid is missing: say whether the best bid wins by itself.')
  if (first('MaxPrice') === undefined) refuse('MaxPrice is missing: say how many fil per GiB and epoch are the most.')
  if (minPrice > maxPrice) refuse('MinPrice must not be more than MaxPrice.')
  if (tags.length > MAX_TAGS) refuse(`There are ${tags.length} Tags; ${MAX_TAGS} are the most.`)
  if (tags.some((tag) => /[,\p{Cc}]/u.test(tag) || tag === '')) refuse('Tags must not be empty or hold a comma.')
  const terms = {
    taskName: first('TaskName') ?? bucket,
    curatedDataset: first('CuratedDataset') ?? '',
    description: first('Description') ?? '',
    isPublic,
    type: type as OfflineTerms['type'],
    ...(minerId !== undefined && { minerId }),
    minPrice: formatAmount(minPrice),
    maxPrice: formatAmount(maxPrice),
    tags,
    expireDays: whole('ExpireDays', 1, MAX_EXPIRE_DAYS, EXPIRE_DAYS),
    ...(isPublic && autoBid !== undefined && { autoBid }),
    duration: whole('DurationEpochs', MIN_DURATION, MAX_DURATION, DURATION),
    fastRetrieval: flag('FastRetrieval') ?? true,
  }
  if (violations.length > 0) throw termsInvalid(violations)
  return terms
}

/** Body of the gateway's call: all members are strings. */
export function offlineBody(terms: OfflineTerms, prefix: string | undefined): Record<string, string> {
  const digit = (value: boolean) => (value ? '1' : '0')
  return {
    Task_Name: terms.taskName,
    Curated_Dataset: terms.curatedDataset,
    Description: terms.description,
    Is_Public: digit(terms.isPublic),
    Type: terms.type,
    ...(terms.minerId !== undefined && { Miner_Id: terms.minerId }),
    Min_Price: terms.minPrice,
    Max_Price: terms.maxPrice,
    Tags: terms.tags.join(','),
    Expire_Days: String(terms.expireDays),
    ...(terms.autoBid !== undefined && { Auto_bid: digit(terms.autoBid) }),
    Duration: String(terms.duration),
    Fast_Retrieval: digit(terms.fastRetrieval),
    ...(prefix !== undefined && { Prefix: prefix }),
  }
}
