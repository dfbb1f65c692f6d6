import pMap from 'p-map'
import { DAY_SECONDS } from '../../common/time.js'
import { DueWork } from '../due-work.js'
import type { ServicesLog } from '../log.js'
import type { Network, Provider } from '../network/network.js'
import type { Database } from '../store/database.js'
import { type Bid, bestBid, isOpen, offerOf } from './bids.js'
import { assignmentMail } from './mail-delivery.js'
import type { PlatformTables } from './store.js'
import type { Task } from './tasks/task.js'

const BATCH = 50

/** Tasks that are moved at the same time: those of a batch share providers, and with them rows. */
const AT_ONCE = 8

/** Most deals per transaction. */
const MAX_DEALS = 1000

interface TaskSchedulerDeps {
  readonly db: Database<PlatformTables>
  readonly network: Network
  readonly seconds: () => number
  readonly log: ServicesLog
  /** Called when the assignment of a task has been committed. */
  readonly onAssigned: () => void
  /** Called when everything that is due has moved. */
  readonly onMoved: () => void
}

/**
 * Moves tasks and deals by the epochs of the network: providers bid, the best bid wins, tasks expire. Every process
 * does it, so that its readers see the present: each step is one transaction, which looks first whether it is due.
 */
export class TaskScheduler {
  readonly #deps: TaskSchedulerDeps
  readonly #work: DueWork

  constructor(deps: TaskSchedulerDeps) {
    this.#deps = deps
    const { network, db, log } = deps
    const { tasks, deals } = db.read
    this.#work = new DueWork({
      network,
      isDue: async () => (await tasks.anyDue(network.epoch())) || (await deals.anyDue(network.epoch())),
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
    const { network, db, seconds } = this.#deps
    const { tasks, deals } = db.read
    const epoch = network.epoch()
    for (let moved = MAX_DEALS; moved === MAX_DEALS && !stop.aborted; ) {
      moved = (await deals.anyDue(epoch))
        ? await db.transaction(({ deals }) => deals.makeReady(epoch, seconds(), MAX_DEALS))
        : 0
    }
    if (!(await tasks.anyDue(epoch))) return
    const providers = await network.providers()
    while (!stop.aborted) {
      const due = await tasks.due(epoch, BATCH)
      if (due.length === 0) return
      const decide = (task: DueTask) => this.#decideIfDue(task, epoch, providers)
      await pMap(due, decide, { concurrency: AT_ONCE, stopOnError: false })
    }
  }

  async #decideIfDue(one: DueTask, epoch: number, providers: readonly Provider[]): Promise<void> {
    const { db, onAssigned } = this.#deps
    if (await db.transaction((tables) => this.#decide(tables, one, epoch, providers))) onAssigned()
  }

  /** Returns true when it has assigned the task to a provider. */
  async #decide(
    tables: PlatformTables,
    { id, due }: DueTask,
    epoch: number,
    providers: readonly Provider[],
  ): Promise<boolean> {
    const { tasks, bids } = tables
    const task = await tasks.find(id)
    // Another request or process may have moved it since.
    if (task === undefined || task.status !== 'Created' || (await tasks.dueOf(id)) !== due) return false
    if (hasExpired(task, due)) {
      await bids.close(task.id)
      await tasks.expire(task.id)
      return false
    }
    if (!seeksBids(task)) {
      await tasks.setDue(task.id, task.expiresEpoch)
      return false
    }
    await this.#placeBids(tables, task, epoch, providers)
    if (mayDecide(task, due) && (await this.#assign(tables, task, epoch, providers))) return true
    await tasks.setDue(task.id, nextDue(task, due, epoch))
    return false
  }

  /** A provider whose bid is not open any more bids again. */
  async #placeBids(tables: PlatformTables, task: Task, epoch: number, providers: readonly Provider[]): Promise<void> {
    const { bids, tasks } = tables
    const known = new Map((await bids.ofTask(task.id)).map((bid) => [bid.minerId, bid]))
    let added = 0
    for (const provider of providers) {
      const bid = known.get(provider.minerId)
      if (bid !== undefined && this.#isOpen(bid, epoch)) continue
      const offer = (await this.#bidsByItself(tables, provider.minerId, epoch)) ? offerOf(task, provider) : undefined
      if (offer === undefined) continue
      await bids.put(task.id, offer, { created: this.#deps.seconds(), createdEpoch: epoch })
      if (bid === undefined) added++
    }
    if (added > 0) await tasks.addBids(task.id, added)
  }

  #isOpen(bid: Bid, epoch: number): boolean {
    return isOpen(bid, epoch, epochsOf(1, this.#deps.network.epochSeconds))
  }

  /** Whether the provider may bid by itself: its owner allows it, and not yet as often in a day as it may. */
  async #bidsByItself({ miners, bids }: PlatformTables, minerId: string, epoch: number): Promise<boolean> {
    const { bidMode, autoBidTaskPerDay } = await miners.settings(minerId)
    const day = epochsOf(1, this.#deps.network.epochSeconds)
    return bidMode === 1 && (await bids.countSince(minerId, epoch - day)) < autoBidTaskPerDay
  }

  /** Returns false when there is no bid to choose. */
  async #assign(
    { bids, tasks, mails }: PlatformTables,
    task: Task,
    epoch: number,
    providers: readonly Provider[],
  ): Promise<boolean> {
    const { seconds } = this.#deps
    const open = (await bids.ofTask(task.id)).filter((one) => this.#isOpen(one, epoch))
    const bid = bestBid(open, providers)
    if (bid === undefined) return false
    await bids.win(bid, seconds())
    await tasks.assign(task.id, bid.minerId)
    const provider = providers.find(({ minerId }) => minerId === bid.minerId)
    const mail = provider && assignmentMail(task, task.deals, provider)
    if (mail !== undefined) await mails.add(mail, seconds())
    return true
  }
}

interface DueTask {
  readonly id: number
  /** Epoch at which it is due. */
  readonly due: number
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
