import { z } from 'zod'
import { type AnswerPart, answerParts, answerShape, lenient, member } from './answers.js'

const { text, flag } = answerParts

/** An amount in the form of the service that states it; '' if it states none. */
const amount = {
  read: lenient.text,
  shown: z.string().meta({ pattern: String.raw`^\d{1,24}(\.\d{1,60})?([eE][+-]?\d{1,2})?$|^$` }),
}
const score = {
  read: lenient.numeric.transform(Math.round).pipe(z.int()).catch(0),
  shown: z.number().int(),
}
const PIECE_LIMIT = 'With its unit, as the provider words it: `32GiB`.'

/**
 * A storage provider in the words of gateways and task platforms.
 * @param timeOf the time of `update_time_str` in RFC 3339; undefined if it is no time
 */
export function providerShape(timeOf: (text: string) => string | undefined) {
  return answerShape({
    MinerId: member('miner_id', { read: lenient.text.pipe(z.string().min(1)), shown: z.string() }),
    Location: member('location', text),
    Price: member('price', amount, 'Decimal, as text: fil per GiB and epoch.'),
    VerifiedPrice: member('verified_price', amount, 'The same for verified deals.'),
    MinPieceSize: member('min_piece_size', text, PIECE_LIMIT),
    MaxPieceSize: member('max_piece_size', text, PIECE_LIMIT),
    OfflineDealAvailable: member('offline_deal_available', flag),
    Score: member('score', score),
    Status: member('status', text),
    ContactInfo: member('contact_info', text),
    UpdateTime: member('update_time_str', text, 'When this was reported, as the service wrote it.'),
    UpdatedAt: member(
      'update_time_str',
      { read: lenient.text.transform(timeOf), shown: z.string().optional() },
      'The same in RFC 3339.',
    ),
  })
}

/** A storage provider, as the answers of all plugins show it. */
export const providerDocument = providerShape(() => undefined).shown
export type ProviderDocument = z.output<typeof providerDocument>

/** A text such as `0.0001 FIL/GiB/day`, whose number some deployments leave out. */
const statistic = z.object({
  Text: z.string().describe('As the service wrote it.'),
  Value: z.number().optional(),
  Unit: z.string().optional(),
})

const optionalStatistic: AnswerPart<z.ZodOptional<typeof statistic>> = {
  read: z
    .unknown()
    .optional()
    .transform((value) => (value === undefined || value === null ? undefined : statisticOf(String(value)))),
  shown: statistic.optional(),
}

function statisticOf(text: string): z.output<typeof statistic> {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)?\s*(.*?)\s*$/.exec(text) ?? []
  return { Text: text, ...(digits !== undefined && { Value: Number(digits) }), ...(unit !== '' && { Unit: unit }) }
}

/** Average prices of storage, as task platforms and payment services compute them. */
export const priceStatistics = answerShape({
  AverageCostPushMessage: member('average_cost_push_message', optionalStatistic),
  AverageDataCostSealing1TB: member('average_data_cost_sealing_1TB', optionalStatistic),
  AverageGasCostSealing1TB: member('average_gas_cost_sealing_1TB', optionalStatistic),
  AverageMinPieceSize: member('average_min_piece_size', optionalStatistic),
  AveragePricePerGBPerYear: member('average_price_per_GB_per_year', optionalStatistic),
  AverageVerifiedPricePerGBPerYear: member('average_verified_price_per_GB_per_year', optionalStatistic),
  HistoricalAveragePriceRegular: member('historical_average_price_regular', optionalStatistic),
  HistoricalAveragePriceVerified: member('historical_average_price_verified', optionalStatistic),
})
