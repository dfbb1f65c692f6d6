import { notYet, type Route } from '../http/route.js'

export const dealRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/offline_deals/:miner_fid',
    access: 'user',
    answer: notYet('Listing the deals of a provider'),
  },
  { method: 'PUT', path: '/my_miner/deals/:deal', access: 'user', answer: notYet('Updating a deal') },
  {
    method: 'PUT',
    path: '/my_miner/tasks/:task_uuid/deals/:deal_cid',
    access: 'user',
    answer: notYet('Updating the status of a deal'),
  },
]
