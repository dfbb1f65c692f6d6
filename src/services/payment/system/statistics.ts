import { NetworkError } from '../../network/network.js'
import { averagePrices } from '../../platform/statistics/prices.js'
import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'

/** GET /stats/storage: average prices; those of the past are in variant A alone. */
export async function priceStatistics({ context: { network, variant } }: Exchange): Promise<object> {
  const prices = averagePrices(network, await network.providers().catch(refused))
  if (variant === 'a') return prices
  return Object.fromEntries(Object.entries(prices).filter(([name]) => !name.startsWith('historical_')))
}

function refused(error: unknown): never {
  throw error instanceof NetworkError ? new PaymentError('busy', error.message) : error
}
