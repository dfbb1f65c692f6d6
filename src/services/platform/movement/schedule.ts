import { DAY_SECONDS } from '../../../common/durations.js'
import type { Task } from '../tasks/task.js'

/** Epochs after which providers have seen a public task and bid, and after which the best bid wins. */
export const FIRST_BIDS = 2
const DECISION = 20

/** Whole epochs that cover these days. */
export function epochsOf(days: number, epochSeconds: number): number {
  return Math.ceil((days * DAY_SECONDS) / epochSeconds)
}

/** Epoch at which a task expires: not before the platform has had the time to choose among bids. */
export function expiryOf(createdEpoch: number, days: number, epochSeconds: number): number {
  return createdEpoch + Math.max(epochsOf(days, epochSeconds), FIRST_BIDS + DECISION)
}

/** True for tasks on which providers bid: there is something to store, and the poster wants a provider. */
export function seeksBids({ bidMode, deals }: Pick<Task, 'bidMode' | 'deals'>): boolean {
  return bidMode !== 'none' && deals > 0
}

type Timed = Pick<Task, 'createdEpoch' | 'expiresEpoch' | 'bidMode'>

/** Epoch at which a task without a provider is moved for the first time. */
export function firstVisit(task: Timed): number {
  return earlier(task, task.createdEpoch + FIRST_BIDS)
}

export function hasExpired({ expiresEpoch }: Timed, epoch: number): boolean {
  return expiresEpoch !== null && epoch >= expiresEpoch
}

/** True when the platform may choose among the bids. */
export function mayDecide({ bidMode, createdEpoch }: Timed, epoch: number): boolean {
  return bidMode === 'auto' && epoch >= createdEpoch + DECISION
}

/**
 * Epoch of the next visit. Visits become rare as a task gets older: providers that come back or get cheaper still find
 * it.
 * @param due epoch of this visit
 * @param epoch the current one, not before `due`
 */
export function nextVisit(task: Timed, due: number, epoch: number): number {
  const decision = task.createdEpoch + DECISION
  if (due < decision) return earlier(task, decision)
  return earlier(task, epoch + Math.max(DECISION, epoch - task.createdEpoch))
}

function earlier({ expiresEpoch }: Timed, epoch: number): number {
  return expiresEpoch === null ? epoch : Math.min(epoch, expiresEpoch)
}
