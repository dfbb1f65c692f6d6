import type { Task } from '../tasks/task.js'
import type { Progress } from '../tasks/task-table.js'
import { DEAL_ACTIVE, isFailure } from './deal-table.js'

/**
 * Counts and status of a task after one of its deals went from one state to another.
 * @param sent 1 when the network did not know the deal before, else 0
 */
export function progressOf(task: Task, from: string, to: string, sent = 0): Progress {
  const change = (counts: (status: string) => boolean): number => Number(counts(to)) - Number(counts(from))
  const activeDeals = task.activeDeals + change((status) => status === DEAL_ACTIVE)
  const failedDeals = task.failedDeals + change(isFailure)
  const sentDeals = task.sentDeals + sent
  const underway = sentDeals === task.deals ? 'DealSent' : 'Assigned'
  const status = activeDeals === task.deals ? 'Completed' : failedDeals > 0 ? 'ProgressWithFailure' : underway
  return { status, activeDeals, failedDeals, sentDeals }
}
