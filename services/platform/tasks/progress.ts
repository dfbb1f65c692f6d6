import { DEAL_ACTIVE, type DealTable, type DealUpdate, isFailure, type PlatformDeal, TO_FETCH } from './deal-table.js'
import type { Task } from './task.js'
import type { Progress, TaskTable } from './task-table.js'

/**
 * Counts and status of a task after one of its deals went from one state to another.
 * @param sent 1 when the network did not know the deal before, else 0
 */
function progressOf(task: Task, from: string, to: string, sent = 0): Progress {
  const change = (counts: (status: string) => boolean): number => Number(counts(to)) - Number(counts(from))
  const activeDeals = task.activeDeals + change((status) => status === DEAL_ACTIVE)
  const failedDeals = task.failedDeals + change(isFailure)
  const sentDeals = task.sentDeals + sent
  const underway = sentDeals === task.deals ? 'DealSent' : 'Assigned'
  const status = activeDeals === task.deals ? 'Completed' : failedDeals > 0 ? 'ProgressWithFailure' : underway
  return { status, activeDeals, failedDeals, sentDeals }
}

/**
 * Writes what a provider did with a deal, and what follows for the task. Call it inside a transaction, for a deal that
 * exists.
 * @param now Unix seconds
 * @param epoch the current one: in the next, a provider goes on with what it has downloaded
 */
export async function writeUpdate(
  { tasks, deals }: { readonly tasks: TaskTable; readonly deals: DealTable },
  id: number,
  update: DealUpdate,
  now: number,
  epoch: number,
): Promise<PlatformDeal> {
  const before = (await deals.find(id)) as PlatformDeal
  const task = (await tasks.find(before.task)) as Task
  await deals.update(id, update, now, epoch)
  const sent = before.sent === 0 && update.proposal !== undefined ? 1 : 0
  const toFetch = Number(TO_FETCH.includes(update.status)) - Number(TO_FETCH.includes(before.status))
  await tasks.setProgress(task.id, progressOf(task, before.status, update.status, sent), toFetch)
  return (await deals.find(id)) as PlatformDeal
}
