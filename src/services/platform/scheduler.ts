import { DAY_SECONDS } from '../../common/time.js'
import type { Writer } from '../database.js'
import { DueWork } from '../due-work.js'
import type { ServicesLog } from '../log.js'
import type { Network, Provider } from '../network/network.js'
import { type Bid, type BidTable, bestBid, isOpen, offerOf } from './bids.js'
import { assignmentMail } from './mail-delivery.js'
import type { MailTable } from './mailer.js'
import type { Miners } from './miner-table.js'
import type { DealTable } from './tasks/deal-table.js'
import type { Task } from './tasks/task.js'
import type { TaskTable } from './tasks/task-table.js'

const BATCH = 50

/** Most deals per transaction. */
const DEALS = 1000

interface TaskSchedulerDeps {
  readonly tasks: TaskTable
  readonly deals: DealTable
  readonly bids: BidTable
  readonly mails: MailTable
  readonly miners: Miners
  readonly writer: Writer
  readonly network: Network
  readonly seconds: () => number
  readonly log: ServicesLog
  /** Called when the assignment of a task has been committed. */
  readonly onAssigned: () => void
  /** Called when everything that is due has moved. */
  readonly onMoved: () => void
}

/** Moves tasks and deals by the epochs of the network: providers bid, the best bid wins, tasks expire. */
export class TaskScheduler {
  readonly #deps: TaskSchedulerDeps
  readonly #work: DueWork

  constructor(deps: TaskSchedulerDeps) {
    this.#deps = deps
    const { network, tasks, deals, log } = deps
    this.#work = new DueWork({
      network,
      isDue: () => tasks.anyDue(network.epoch()) || deals.anyDue(network.epoch()),
      pass: (stop) => this.#pass(stop),
      failed: (err) => log.warn({ err }, 'Could not move all tasks that are due.'),
    })
  }

  start(): void {
    this.#work.start()
  }

  /**
   * Resolves when everything that is due by the current epoch has moved, so that a reader sees the present; or when the
   * network fails, and tasks stay as they are.
   */
  async catchUp(): Promise<void> {
    await this.#work.catchUp()
    if (!this.#work.signal.aborted) this.#deps.onMoved()
  }

  stop(): Promise<void> {
    return this.#work.stop()
  }

  async #pass(stop: AbortSignal): Promise<void> {
    const { network, writer, tasks, deals, seconds } = this.#deps
    const epoch = network.epoch()
    for (let moved = DEALS; moved === DEALS && !stop.aborted; ) {
      moved = deals.anyDue(epoch) ? await writer.run(() => deals.makeReady(epoch, seconds(), DEALS)) : 0
    }
    if (!tasks.anyDue(epoch)) return
    const providers = await network.providers()
    while (!stop.aborted) {
      const due = tasks.due(epoch, BATCH)
      if (due.length === 0) return
      await Promise.all(due.map((task) => writer.run(() => this.#decideIfDue(task, epoch, providers))))
    }
  }

  /** Runs inside a transaction. */
  #decideIfDue(
    { id, due }: { readonly id: number; readonly due: number },
    epoch: number,
    providers: readonly Provider[],
  ): void {
    const { tasks, bids } = this.#deps
    const task = tasks.find(id)
    if (task === undefined) return
    if (hasExpired(task, due)) {
      bids.close(task.id)
      tasks.expire(task.id)
      return
    }
    if (!seeksBids(task)) {
      tasks.setDue(task.id, task.expiresEpoch)
      return
    }
    this.#placeBids(task, epoch, providers)
    if (mayDecide(task, due) && this.#decide(task, epoch, providers)) return
    tasks.setDue(task.id, nextDue(task, due, epoch))
  }

  /** A provider whose bid is not open any more bids again. */
  #placeBids(task: Task, epoch: number, providers: readonly Provider[]): void {
    const { bids, tasks, seconds } = this.#deps
    const known = new Map(bids.ofTask(task.id).map((bid) => [bid.minerId, bid]))
    let added = 0
    for (const provider of providers) {
      const bid = known.get(provider.minerId)
      if (bid !== undefined && this.#isOpen(bid, epoch)) continue
      const offer = this.#bidsByItself(provider.minerId, epoch) ? offerOf(task, provider) : undefined
      if (offer === undefined) continue
      bids.put(task.id, offer, { created: seconds(), createdEpoch: epoch })
      if (bid === undefined) added++
    }
    if (added > 0) tasks.addBids(task.id, added)
  }

  #isOpen(bid: Bid, epoch: number): boolean {
    return isOpen(bid, epoch, epochsOf(1, this.#deps.network.epochSeconds))
  }

  /** As the owner of the provider wants it: at all, and not more often in a day. */
  #bidsByItself(minerId: string, epoch: number): boolean {
    const { miners, bids, network } = this.#deps
    const { bidMode, autoBidTaskPerDay } = miners.settings(minerId)
    return bidMode === 1 && bids.countSince(minerId, epoch - epochsOf(1, network.epochSeconds)) < autoBidTaskPerDay
  }

  /** Returns false when there is no bid to choose. */
  #decide(task: Task, epoch: number, providers: readonly Provider[]): boolean {
    const { bids, tasks, mails, seconds, onAssigned } = this.#deps
    const bid = bestBid(
      bids.ofTask(task.id).filter((one) => this.#isOpen(one, epoch)),
      providers,
    )
    if (bid === undefined) return false
    bids.win(bid, seconds())
    tasks.assign(task.id, bid.minerId)
    const provider = providers.find(({ minerId }) => minerId === bid.minerId)
    const mail = provider && assignmentMail(task, task.deals, provider)
    if (mail !== undefined) mails.add(mail, seconds())
    // Not before the commit.
    setImmediate(onAssigned)
    return true
  }
}

/** Epochs after which providers have seen a public task and bid, and after which the best bid wins. */
const FIRST_BIDS = 2
const DECISION = 20

/** Whole epochs that cover these days. */
function epochsOf(days: number, epochSeconds: number): number {
  return Math.ceil((days * DAY_SECONDS) / epochSeconds)
}

/** Epoch at which a task expires: not before the platform has had the time to choose among bids. */
export function expiryOf(createdEpoch: number, days: number, epochSeconds: number): number {
  return createdEpoch + Math.max(epochsOf(days, epochSeconds), FIRST_BIDS + DECISION)
}

/** True for tasks on which providers bid: there is something to store, and the poster wants a provider. */
function seeksBids({ bidMode, deals }: Pick<Task, 'bidMode' | 'deals'>): boolean {
  return bidMode !== 'none' && deals > 0
}

type Timed = Pick<Task, 'createdEpoch' | 'expiresEpoch' | 'bidMode'>

/** Epoch at which a task without a provider is moved for the first time. */
export function firstDue(task: Timed): number {
  return earlier(task, task.createdEpoch + FIRST_BIDS)
}

function hasExpired({ expiresEpoch }: Timed, epoch: number): boolean {
  return expiresEpoch !== null && epoch >= expiresEpoch
}

/** True when the platform may choose among the bids. */
function mayDecide({ bidMode, createdEpoch }: Timed, epoch: number): boolean {
  return bidMode === 'auto' && epoch >= createdEpoch + DECISION
}

/**
 * Epoch at which the task is due next. That becomes rare as a task gets older: providers that come back or get cheaper
 * still find it.
 * @param due epoch at which it is due now
 * @param epoch the current one, not before `due`
 */
function nextDue(task: Timed, due: number, epoch: number): number {
  const decision = task.createdEpoch + DECISION
  if (due < decision) return earlier(task, decision)
  return earlier(task, epoch + Math.max(DECISION, epoch - task.createdEpoch))
}

function earlier({ expiresEpoch }: Timed, epoch: number): number {
  return expiresEpoch === null ? epoch : Math.min(epoch, expiresEpoch)
}
