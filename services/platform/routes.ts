import type { Route } from './exchange.js'
import { heartbeat, listMiners, showBidding, showMiner, updateAsk, updateMiner } from './miners.js'
import { priceStatistics } from './prices.js'
import { issueKeyOrJwt, listKeys, logIn, revokeKey } from './sign-in.js'
import { createTask } from './tasks/create-task.js'
import { showProviderTasks, showTasks } from './tasks/list-tasks.js'
import { showTask, updateTask } from './tasks/show-task.js'
import { listDeals, updateDeal, updateTaskDeal } from './tasks/update-deal.js'

/** @param summary for the table in docs/tasks.md */
function row(
  method: Route['method'],
  path: string,
  access: Route['access'],
  answer: Route['answer'],
  summary: string,
): Route {
  return { method, path, access, answer, summary }
}

export const routes: readonly Route[] = [
  row('POST', '/auth/login', 'public', logIn, 'returns a JWT, valid for a day, for `email` and `password`'),
  // Who may call depends on the body, so the answer decides it.
  row(
    'POST',
    '/user/api_keys/jwt',
    'public',
    issueKeyOrJwt,
    'makes an API key named `key_name`, or returns a JWT for `apikey` and `access_token`',
  ),
  row('GET', '/user/api_keys', 'signed-in', listKeys, 'lists the API keys of the caller, without their secrets'),
  row(
    'POST',
    '/user/api_keys/revoke',
    'signed-in',
    revokeKey,
    'removes the key `apikey` with the JWTs that were issued for it',
  ),
  row('GET', '/miners', 'public', listMiners, 'lists the storage providers'),
  row('GET', '/miners/:miner_id', 'public', showMiner, 'shows one storage provider'),
  row('POST', '/miner/info', 'user', updateMiner, 'changes how a provider of the caller bids'),
  // Programs of providers call these three.
  row('GET', '/miner/info/:miner_fid', 'public', showBidding, 'shows how a provider bids'),
  row('POST', '/heartbeat', 'user', heartbeat, 'records that a provider of the caller is there'),
  row('PUT', '/miners/:miner_id/status', 'user', updateAsk, 'changes what a provider of the caller asks'),
  row('GET', '/stats/storage', 'public', priceStatistics, 'shows average prices'),
  row('GET', '/tasks', 'optional', showTasks, 'lists the tasks of the caller, or public ones'),
  row('GET', '/tasks/:task_uuid', 'optional', showTask, 'shows a task with its bids and a page of its deals'),
  row('POST', '/tasks', 'user', createTask, 'posts a task'),
  row('PUT', '/uuid_tasks/:task_uuid', 'user', updateTask, 'names the provider of a task that has none'),
  row('GET', '/my_miner/tasks', 'user', showProviderTasks, 'lists the tasks that providers of the caller have'),
  row('GET', '/offline_deals/:miner_fid', 'user', listDeals, 'lists the deals of a provider: its owner sees all'),
  row(
    'PUT',
    '/my_miner/deals/:deal',
    'user',
    updateDeal,
    'writes what the provider did with a deal, named by number or CID',
  ),
  row(
    'PUT',
    '/my_miner/tasks/:task_uuid/deals/:deal_cid',
    'user',
    updateTaskDeal,
    'the same, for a deal named by its task and its CID',
  ),
]
