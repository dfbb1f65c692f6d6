import type { Task } from '../tasks/task.js'
import type { Progress } from '../tasks/task-table.js'
import { DEAL_ACTIVE, isFailure } from './deal-table.js'

/** Counts and status of a task after one of its deals went from one state to another. */
export function progressOf(task: Task, from: string, to: string): Progress {
  const change = (counts: (status: string) => boolean): number => Number(counts(to)) - Number(counts(from))
  const activeDeals = task.activeDeals + change((status) => status === DEAL_ACTIVE)
  const failedDeals = task.failedDeals + change(isFailure)
  const status = activeDeals === task.deals ? 'Completed' : failedDeals > 0 ? 'ProgressWithFailure' : 'Assigned'
  return { status, activeDeals, failedDeals }
}
