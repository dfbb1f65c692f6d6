import type { Task } from '../tasks/task.js'
import type { TaskTable } from '../tasks/task-table.js'
import { type DealTable, type DealUpdate, type PlatformDeal, TO_FETCH } from './deal-table.js'
import { progressOf } from './progress.js'

/**
 * Writes what a provider did with a deal, and what follows for the task. Call it inside a transaction, for a deal that
 * exists.
 * @param now Unix seconds
 * @param epoch the current one: in the next, a provider goes on with what it has downloaded
 */
export function writeUpdate(
  { tasks, deals }: { readonly tasks: TaskTable; readonly deals: DealTable },
  id: number,
  update: DealUpdate,
  now: number,
  epoch: number,
): PlatformDeal {
  const before = deals.find(id) as PlatformDeal
  const task = tasks.find(before.task) as Task
  deals.update(id, update, now, epoch)
  const sent = before.sent === 0 && update.proposal !== undefined ? 1 : 0
  const toFetch = Number(TO_FETCH.includes(update.status)) - Number(TO_FETCH.includes(before.status))
  tasks.setProgress(task.id, progressOf(task, before.status, update.status, sent), toFetch)
  return deals.find(id) as PlatformDeal
}
