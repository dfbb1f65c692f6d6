import type { Route } from '../http/route.js'
import { listDeals } from './list-deals.js'
import { updateDeal, updateTaskDeal } from './update-deal.js'

export const dealRoutes: readonly Route[] = [
  { method: 'GET', path: '/offline_deals/:miner_fid', access: 'user', answer: listDeals },
  { method: 'PUT', path: '/my_miner/deals/:deal', access: 'user', answer: updateDeal },
  { method: 'PUT', path: '/my_miner/tasks/:task_uuid/deals/:deal_cid', access: 'user', answer: updateTaskDeal },
]
