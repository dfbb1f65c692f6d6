import type { Route } from '../http/route.js'
import { heartbeat } from './heartbeat.js'
import { listMiners } from './list.js'
import { showBidding, showMiner } from './show.js'
import { updateMiner } from './update.js'
import { updateAsk } from './update-ask.js'

export const minerRoutes: readonly Route[] = [
  { method: 'GET', path: '/miners', access: 'public', answer: listMiners },
  { method: 'GET', path: '/miners/:miner_id', access: 'public', answer: showMiner },
  { method: 'POST', path: '/miner/info', access: 'user', answer: updateMiner },
  // Programs of providers call these.
  { method: 'GET', path: '/miner/info/:miner_fid', access: 'public', answer: showBidding },
  { method: 'POST', path: '/heartbeat', access: 'user', answer: heartbeat },
  { method: 'PUT', path: '/miners/:miner_id/status', access: 'user', answer: updateAsk },
]
