import { defineCall, providerDocument, S3Error, withRaw } from 'dealgate'
import { z } from 'zod'
import { providerOf } from '../documents.js'
import type { TaskParts } from '../parts.js'
import { dataOf, listOf, wireProvider } from '../wire.js'
import { pageQuery, platformPage, SOURCE, send } from './send.js'

const listed = listOf(wireProvider, 'miner', 'miners')
const one = z.union([z.object({ miner: wireProvider }).transform(({ miner }) => miner), wireProvider])
const counted = z.object({ total_items: z.coerce.number().int().nonnegative() })

const SORTED_BY = ['update_time_str', 'price', 'verified_price', 'score', 'status', 'location'] as const

export function listProviders(parts: TaskParts) {
  return defineCall({
    name: 'ListProviders',
    source: SOURCE,
    summary: 'Lists the storage providers of the task platform.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/providers' },
    query: z.strictObject({
      location: z
        .string()
        .max(100)
        .optional()
        .describe('Global, Asia, Africa, North America, South America, Europe or Oceania.'),
      'offline-deal-available': z
        .boolean()
        .optional()
        .describe('Only those that take offline deals, or only the others.'),
      status: z.string().max(100).optional().describe('Active, Offline or Deleted.'),
      'sort-by': z.enum(SORTED_BY).optional(),
      order: z.enum(['ascending', 'descending']).optional(),
      ...pageQuery,
    }),
    result: z.object({ Providers: z.array(providerDocument).meta({ element: 'Provider' }) }),
    pages: 'Providers',
    async answer({ query, page: wanted, request }, context) {
      const offline = query['offline-deal-available']
      const { page, found } = await platformPage(parts.options, { page: wanted, query }, async ({ limit, offset }) => {
        const filters = {
          location: query.location,
          offline_deal_available: offline === undefined ? undefined : Number(offline),
          status: query.status,
          sort_by: query['sort-by'],
          order: query.order,
        }
        const call = { method: 'GET', path: ['miners'], query: { limit, offset, ...filters } } as const
        const answer = await send(parts, context, request, call, { need: 'none' })
        const items = dataOf(answer, listed).map(providerOf)
        const total = counted.safeParse((answer.json as { data?: unknown }).data).data?.total_items
        return { items, ...(total !== undefined && { total }), raw: answer.json }
      })
      return withRaw({ Providers: page }, found.raw)
    },
  })
}

export function getProvider(parts: TaskParts) {
  return defineCall({
    name: 'GetProvider',
    source: SOURCE,
    summary: 'Returns a storage provider of the task platform.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/providers/{MinerId}' },
    result: z.object({ Provider: providerDocument }),
    async answer({ request }, context) {
      const { MinerId = '' } = request.params
      const missing = () => new S3Error('NoSuchProvider', { fields: { MinerId } })
      const call = { method: 'GET', path: ['miners', MinerId] } as const
      const answer = await send(parts, context, request, call, { need: 'none', missing })
      const provider = dataOf(answer, one)
      return withRaw({ Provider: providerOf(provider) }, answer.json)
    },
  })
}

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
