import { defineCall, withRaw } from 'dealgate'
import { z } from 'zod'
import type { TaskParts } from '../parts.js'
import { dataOf } from '../wire/answer.js'
import { send } from './send.js'
import { SOURCE } from './sources.js'

const statistic = z.object({
  Text: z.string().describe('As the platform wrote it.'),
  Value: z.number().optional(),
  Unit: z.string().optional(),
})

const NAMES = {
  AverageCostPushMessage: 'average_cost_push_message',
  AverageDataCostSealing1TB: 'average_data_cost_sealing_1TB',
  AverageGasCostSealing1TB: 'average_gas_cost_sealing_1TB',
  AverageMinPieceSize: 'average_min_piece_size',
  AveragePricePerGBPerYear: 'average_price_per_GB_per_year',
  AverageVerifiedPricePerGBPerYear: 'average_verified_price_per_GB_per_year',
  HistoricalAveragePriceRegular: 'historical_average_price_regular',
  HistoricalAveragePriceVerified: 'historical_average_price_verified',
} as const
type Name = keyof typeof NAMES

const result = z.object(
  Object.fromEntries(Object.keys(NAMES).map((name) => [name, statistic.optional()])) as Record<
    Name,
    z.ZodOptional<typeof statistic>
  >,
)

export function getPriceStatistics(parts: TaskParts) {
  return defineCall({
    name: 'GetPriceStatistics',
    source: SOURCE,
    summary: 'Returns average prices of storage, as the task platform computes them.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/price-statistics' },
    result,
    async answer({ request }, context) {
      const call = { method: 'GET', path: ['stats', 'storage'] } as const
      const answer = await send(parts, context, request, call, { need: 'none' })
      const data = dataOf(answer, z.record(z.string(), z.unknown()))
      const found = Object.entries(NAMES).flatMap(([name, wire]) =>
        data[wire] === undefined || data[wire] === null ? [] : [[name, statisticOf(String(data[wire]))]],
      )
      return withRaw(Object.fromEntries(found) as z.output<typeof result>, answer.json)
    },
  })
}

/** Splits a text such as `0.0001 FIL/GiB/day`. */
function statisticOf(text: string): z.output<typeof statistic> {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(.*?)\s*$/.exec(text) ?? []
  return { Text: text, ...(digits !== undefined && { Value: Number(digits), ...(unit !== '' && { Unit: unit }) }) }
}
