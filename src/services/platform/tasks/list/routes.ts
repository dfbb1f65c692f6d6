import type { Exchange } from '../../http/exchange.js'
import { readPage } from '../../http/paging.js'
import { requireUser } from '../../sign-in/caller.js'
import { taskSummary } from '../task-view.js'
import { type Condition, readFilters } from './filters.js'
import { listTasks } from './task-list.js'

/** Most tasks of a provider in one answer, unless the request says otherwise. */
const OF_PROVIDER = 20

/** GET /tasks: the tasks of the caller, or, to an anonymous caller, the public ones. */
export function showTasks(exchange: Exchange): Promise<object> {
  const { caller } = exchange
  const scope =
    caller === undefined ? { sql: 'is_public = 1', values: [] } : { sql: 'user = ?', values: [caller.user.id] }
  return show(exchange, scope)
}

/** GET /my_miner/tasks: the tasks that the caller's providers work. */
export async function showProviderTasks(exchange: Exchange): Promise<object> {
  const user = requireUser(exchange)
  // A user has all providers, or none.
  const sql = exchange.context.miners.isOwner(user) ? 'miner_id IS NOT NULL' : '0'
  return show(exchange, { sql, values: [] }, OF_PROVIDER)
}

async function show(exchange: Exchange, scope: Condition, usualLimit?: number): Promise<object> {
  const { context, query } = exchange
  const page = readPage(exchange, usualLimit)
  const filters = readFilters(query)
  await context.market.mover.catchUp()
  const { tasks, matching, all } = listTasks(context.db, scope, filters, page)
  const counts = { total_items: matching, total_task_count: all }
  // Clients of the interface look for the counts beside the list as well as beside the status.
  return { data: { task: tasks.map(taskSummary), ...counts }, ...counts }
}
