import type { Route } from '../http/route.js'
import { showDeal } from './show-deal.js'
import { showLog } from './show-log.js'

export const dealRoutes: readonly Route[] = [
  { method: 'GET', path: '/api/v1/storage/deal/detail/:deal_id', access: 'wallet', answer: showDeal },
  { method: 'GET', path: '/api/v1/storage/deal/log/:offline_deal_id', access: 'wallet', answer: showLog },
]
