import type { Route } from '../http/route.js'
import { COIN_PRICE } from './coin.js'
import { hostInfo } from './host-info.js'
import { systemParams } from './params.js'
import { priceStatistics } from './statistics.js'

export const systemRoutes: readonly Route[] = [
  { method: 'GET', path: '/api/v1/common/system/params', access: 'public', codeless: 'a', answer: systemParams },
  { method: 'GET', path: '/api/v1/common/host/info', access: 'public', codeless: 'a', answer: hostInfo },
  {
    method: 'GET',
    path: '/api/v1/billing/price/storagecoin',
    access: 'public',
    codeAsText: true,
    answer: () => COIN_PRICE,
  },
  { method: 'GET', path: '/stats/storage', access: 'public', answer: priceStatistics },
]
