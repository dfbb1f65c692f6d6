import type { Route } from '../http/route.js'
import { priceStatistics } from './prices.js'

export const statisticsRoutes: readonly Route[] = [
  { method: 'GET', path: '/stats/storage', access: 'public', answer: priceStatistics },
]
