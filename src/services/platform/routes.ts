import type { Route } from './exchange.js'
import { heartbeat, listMiners, showBidding, showMiner, updateAsk, updateMiner } from './miners.js'
import { priceStatistics } from './prices.js'
import { issueKeyOrJwt, listKeys, logIn, revokeKey } from './sign-in.js'
import { createTask } from './tasks/create-task.js'
import { showProviderTasks, showTasks } from './tasks/list-tasks.js'
import { showTask, updateTask } from './tasks/show-task.js'
import { listDeals, updateDeal, updateTaskDeal } from './tasks/update-deal.js'

const apiKeyRoutes: readonly Route[] = [
  // Who may call depends on the body, so the answer decides it.
  { method: 'POST', path: '/user/api_keys/jwt', access: 'public', answer: issueKeyOrJwt },
  { method: 'GET', path: '/user/api_keys', access: 'signed-in', answer: listKeys },
  { method: 'POST', path: '/user/api_keys/revoke', access: 'signed-in', answer: revokeKey },
]

const dealRoutes: readonly Route[] = [
  { method: 'GET', path: '/offline_deals/:miner_fid', access: 'user', answer: listDeals },
  { method: 'PUT', path: '/my_miner/deals/:deal', access: 'user', answer: updateDeal },
  { method: 'PUT', path: '/my_miner/tasks/:task_uuid/deals/:deal_cid', access: 'user', answer: updateTaskDeal },
]

const minerRoutes: readonly Route[] = [
  { method: 'GET', path: '/miners', access: 'public', answer: listMiners },
  { method: 'GET', path: '/miners/:miner_id', access: 'public', answer: showMiner },
  { method: 'POST', path: '/miner/info', access: 'user', answer: updateMiner },
  // Programs of providers call these.
  { method: 'GET', path: '/miner/info/:miner_fid', access: 'public', answer: showBidding },
  { method: 'POST', path: '/heartbeat', access: 'user', answer: heartbeat },
  { method: 'PUT', path: '/miners/:miner_id/status', access: 'user', answer: updateAsk },
]

const signInRoutes: readonly Route[] = [{ method: 'POST', path: '/auth/login', access: 'public', answer: logIn }]

const statisticsRoutes: readonly Route[] = [
  { method: 'GET', path: '/stats/storage', access: 'public', answer: priceStatistics },
]

const taskRoutes: readonly Route[] = [
  { method: 'GET', path: '/tasks', access: 'optional', answer: showTasks },
  { method: 'GET', path: '/tasks/:task_uuid', access: 'optional', answer: showTask },
  { method: 'POST', path: '/tasks', access: 'user', answer: createTask },
  { method: 'PUT', path: '/uuid_tasks/:task_uuid', access: 'user', answer: updateTask },
  { method: 'GET', path: '/my_miner/tasks', access: 'user', answer: showProviderTasks },
]

export const routes: readonly Route[] = [
  ...signInRoutes,
  ...apiKeyRoutes,
  ...minerRoutes,
  ...statisticsRoutes,
  ...taskRoutes,
  ...dealRoutes,
]
