import { DAY_SECONDS, PeriodicTask } from '../../common/time.js'
import type { Writer } from '../database.js'
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

/** Shortest interval between two looks at the clock, ms. */
const MIN_INTERVAL_MS = 1000

interface MoverParts {
  readonly tasks: TaskTable
  readonly deals: DealTable
  readonly bids: BidTable
  readonly mails: MailTable
  readonly miners: Miners
  readonly writer: Writer
  readonly network: Network
  /** Unix seconds. */
  readonly seconds: () => number
  readonly log: ServicesLog
  /** Called when the assignment of a task has been committed. */
  readonly onAssigned: () => void
  /** Called when everything that is due has moved. */
  readonly onMoved: () => void
}

/**
 * Moves tasks and deals by the epochs of the network: providers bid, the best bid wins, tasks expire. Each step is one
 * transaction, and what a step does follows from what the database holds: a step that a crash cut off is done again as
 * a whole.
 */
export class Mover {
  readonly #parts: MoverParts
  readonly #task: PeriodicTask
  #stopped = false

  constructor(parts: MoverParts) {
    this.#parts = parts
    this.#task = new PeriodicTask(
      () => this.#pass(),
      (err) => {
        if (!this.#stopped) parts.log.warn({ err }, 'Could not move all tasks that are due.')
      },
    )
  }

  start(): void {
    this.#task.start(Math.max(MIN_INTERVAL_MS, this.#parts.network.epochSeconds * 1000))
  }

  /**
   * Resolves when everything that is due by the current epoch has moved, so that a reader sees the present; or when the
   * network fails, and tasks stay as they are.
   */
  async catchUp(): Promise<void> {
    // A run in progress may have begun before the epoch did.
    for (let runs = 0; runs < 2 && !this.#stopped && this.#isDue(); runs++) await this.#task.run()
    if (!this.#stopped) this.#parts.onMoved()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#task.stop()
  }

  #isDue(): boolean {
    const { network, tasks, deals } = this.#parts
    const epoch = network.epoch()
    return tasks.anyDue(epoch) || deals.anyDue(epoch)
  }

  async #pass(): Promise<void> {
    const { network, writer, tasks, deals, seconds } = this.#parts
    const epoch = network.epoch()
    for (let moved = DEALS; moved === DEALS && !this.#stopped; ) {
      moved = deals.anyDue(epoch) ? await writer.run(() => deals.makeReady(epoch, seconds(), DEALS)) : 0
    }
    if (!tasks.anyDue(epoch)) return
    const providers = await network.providers()
    while (!this.#stopped) {
      const due = tasks.due(epoch, BATCH)
      if (due.length === 0) return
      await Promise.all(due.map((visit) => writer.run(() => this.#visit(visit, epoch, providers))))
    }
  }

  /** Runs inside a transaction. */
  #visit(visit: { readonly id: number; readonly due: number }, epoch: number, providers: readonly Provider[]): void {
    const { tasks, bids } = this.#parts
    const task = tasks.find(visit.id)
    if (task === undefined) return
    if (hasExpired(task, visit.due)) {
      bids.close(task.id)
      tasks.expire(task.id)
      return
    }
    if (!seeksBids(task)) {
      tasks.setDue(task.id, task.expiresEpoch)
      return
    }
    this.#placeBids(task, epoch, providers)
    if (mayDecide(task, visit.due) && this.#decide(task, epoch, providers)) return
    tasks.setDue(task.id, nextVisit(task, visit.due, epoch))
  }

  /** A provider whose bid is not open any more bids again. */
  #placeBids(task: Task, epoch: number, providers: readonly Provider[]): void {
    const { bids, tasks, seconds } = this.#parts
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
    return isOpen(bid, epoch, epochsOf(1, this.#parts.network.epochSeconds))
  }

  /** As the owner of the provider wants it: at all, and not more often in a day. */
  #bidsByItself(minerId: string, epoch: number): boolean {
    const { miners, bids, network } = this.#parts
    const { bidMode, autoBidTaskPerDay } = miners.settings(minerId)
    return bidMode === 1 && bids.countSince(minerId, epoch - epochsOf(1, network.epochSeconds)) < autoBidTaskPerDay
  }

  /** Returns false when there is no bid to choose. */
  #decide(task: Task, epoch: number, providers: readonly Provider[]): boolean {
    const { bids, tasks, mails, seconds, onAssigned } = this.#parts
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
