import type { Route } from '../http/route.js'
import { listMiners } from './list.js'
import { showMiner } from './show.js'
import { updateMiner } from './update.js'

export const minerRoutes: readonly Route[] = [
  { method: 'GET', path: '/miners', access: 'public', answer: listMiners },
  { method: 'GET', path: '/miners/:miner_id', access: 'public', answer: showMiner },
  { method: 'POST', path: '/miner/info', access: 'user', answer: updateMiner },
]
