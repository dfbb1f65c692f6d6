import { priceStatistics, providerDocument } from 'dealgate/paid'
import { defineCall, S3Error, withRaw } from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import { listOf, provider } from '../documents.js'
import { platform } from '../platform.js'
import { pageQuery, platformPage, SOURCE, send } from './send.js'

const listed = listOf(provider.read, 'miner', 'miners')
const one = z.union([z.object({ miner: provider.read }).transform(({ miner }) => miner), provider.read])
const counted = z.object({ total_items: z.coerce.number().int().nonnegative() })

const SORTED_BY = ['update_time_str', 'price', 'verified_price', 'score', 'status', 'location'] as const

export function listProviders(deps: TaskDeps) {
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
      const { page, found } = await platformPage(deps.options, { page: wanted, query }, async ({ limit, offset }) => {
        const filters = {
          location: query.location,
          offline_deal_available: offline === undefined ? undefined : Number(offline),
          status: query.status,
          sort_by: query['sort-by'],
          order: query.order,
        }
        const call = { method: 'GET', path: ['miners'], query: { limit, offset, ...filters } } as const
        const answer = await send(deps, context, request, call, { need: 'none' })
        const items = platform.dataOf(answer, listed)
        const total = counted.safeParse((answer.json as { data?: unknown }).data).data?.total_items
        return { items, ...(total !== undefined && { total }), raw: answer.json }
      })
      return withRaw({ Providers: page }, found.raw)
    },
  })
}

export function getProvider(deps: TaskDeps) {
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
      const answer = await send(deps, context, request, call, { need: 'none', missing })
      return withRaw({ Provider: platform.dataOf(answer, one) }, answer.json)
    },
  })
}

export function getPriceStatistics(deps: TaskDeps) {
  return defineCall({
    name: 'GetPriceStatistics',
    source: SOURCE,
    summary: 'Returns average prices of storage, as the task platform computes them.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/price-statistics' },
    result: priceStatistics.shown,
    async answer({ request }, context) {
      const call = { method: 'GET', path: ['stats', 'storage'] } as const
      const answer = await send(deps, context, request, call, { need: 'none' })
      return withRaw(platform.dataOf(answer, priceStatistics.read), answer.json)
    },
  })
}
