import type { ListedProvider } from '../../network/provider-record.js'
import { parseFil } from '../../network/units/fil.js'
import type { Exchange } from '../http/exchange.js'
import { readPage } from '../http/paging.js'
import { choice } from '../http/query.js'
import { knownProviders, recordOf } from './known-providers.js'
import { locations } from './locations.js'

const STATES = ['Active', 'Offline', 'Deleted'] as const
const YES_NO = ['1', '0', 'true', 'false'] as const
const ORDERS = ['asc', 'ascending', 'desc', 'descending'] as const

type Order = (a: ListedProvider, b: ListedProvider) => number

const orders = {
  update_time_str: (a, b) => a.updated - b.updated,
  price: (a, b) => compare(parseFil(a.price) ?? -1n, parseFil(b.price) ?? -1n),
  // Without a price, a provider takes no verified deals.
  verified_price: (a, b) => compare(parseFil(a.verifiedPrice) ?? -1n, parseFil(b.verifiedPrice) ?? -1n),
  score: (a, b) => a.score - b.score,
  status: (a, b) => compare(a.status, b.status),
  location: (a, b) => compare(a.location, b.location),
} satisfies Record<string, Order>

/**
 * GET /miners: storage providers by location, offline_deal_available, status, sorted by sort_by. Those that are equal
 * in it, and all without it, are in the order of their ids.
 */
export async function listMiners(exchange: Exchange): Promise<object> {
  const { query } = exchange
  const page = readPage(exchange)
  const location = choice(query, 'location', locations)
  const status = choice(query, 'status', STATES)
  const offline = choice(query, 'offline_deal_available', YES_NO)
  const sortBy = choice(query, 'sort_by', Object.keys(orders) as (keyof typeof orders)[])
  const descending = choice(query, 'order', ORDERS)?.startsWith('desc') === true
  const byId: Order = (a, b) => compare(a.minerId, b.minerId)
  const by: Order = sortBy === undefined ? byId : orders[sortBy]
  const found = (await knownProviders(exchange.context))
    .filter((provider) => location === undefined || provider.location === location)
    .filter((provider) => status === undefined || provider.status === status)
    .filter(
      ({ offlineDealAvailable }) =>
        offline === undefined || offlineDealAvailable === (offline === '1' || offline === 'true'),
    )
    .sort((a, b) => (descending ? by(b, a) : by(a, b)) || byId(a, b))
  const shown = found.slice(page.offset, page.offset + page.limit)
  return { data: { miner: shown.map(recordOf), total_items: found.length } }
}

function compare<T extends string | bigint>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}
