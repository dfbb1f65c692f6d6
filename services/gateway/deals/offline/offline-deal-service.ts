import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Quota } from '../../../../common/quota.js'
import { ServiceClient } from '../../../../common/service-client.js'
import { rfc3339 } from '../../../clock.js'
import type { PlatformLogin } from '../../../platform/users.js'
import { pages } from '../../../store/database.js'
import { FIRST } from '../../accounts/accounts.js'
import type { GatewayCore } from '../../core.js'
import { GatewayError } from '../../errors.js'
import { dropDeal, mustOwn, TokenInUse } from '../deal-maker.js'
import { LISTING, POLL_MS, type Progress, publisher } from '../deal-service.js'
import { followTask, proposeToWinner, type SendContext, sendTask } from './offline-task.js'
import type { OfflineAsk, OfflineCar, OfflineTask } from './offline-tasks.js'
import { packTask } from './pack-task.js'
import { PlatformClient } from './platform-client.js'

/** Requests that one process carries out at the same time, in all and of one account. */
const SLOTS = { total: 16, perClient: 4 }
const BATCH = 100
/** Shortest interval between two looks at the platform, ms. */
const MIN_INTERVAL_MS = 1000

type OfflineContext = Omit<SendContext, 'urlOf' | 'limits'> &
  Pick<GatewayCore, 'tasks' | 'limits' | 'names' | 'upkeep'> & { readonly login: PlatformLogin }

interface Underway {
  readonly ask: OfflineAsk
  id?: number
  readonly made: Promise<OfflineTask>
  progress: Progress
}

/**
 * Accepts requests for offline deals and posts one task per account and token, however often a request is repeated,
 * also after a crash. Follows the tasks until their CARs are needed no more.
 */
export class OfflineDealService {
  readonly #context: OfflineContext & SendContext
  readonly #underway = new Set<Underway>()
  readonly #slots = new Quota(SLOTS)
  readonly #platform: ServiceClient
  #url = ''

  constructor(context: OfflineContext) {
    const { path } = context.names
    this.#platform = new ServiceClient({ service: 'task platform', url: context.login.url })
    this.#context = { ...context, urlOf: ({ secret }) => `${this.#url}/${path}/car/${secret}` }
  }

  /**
   * Packs the bucket and posts the task. A request with the token of an earlier one must ask for the same; it waits for
   * that task and returns it. Throws GatewayError; then there is no task, unless the network or the platform could not
   * answer: the gateway goes on later.
   */
  async make(ask: OfflineAsk): Promise<OfflineTask> {
    for (;;) {
      try {
        return await this.#make(ask)
      } catch (error) {
        if (!(error instanceof TokenInUse)) throw error
      }
    }
  }

  async #make(ask: OfflineAsk): Promise<OfflineTask> {
    const { token, account } = ask
    if (token === undefined) return this.#start(ask, () => this.#begin(ask))
    for (;;) {
      const task = await this.#context.db.read.offlineTasks.findByToken(account, token)
      // No other request runs from here to the start.
      const underway = this.#underwayWith(account, token)
      if (underway !== undefined) {
        mustAskTheSame(underway.ask, ask)
        return underway.made
      }
      if (task === undefined) return this.#start(ask, () => this.#begin(ask))
      mustAskTheSame(task, ask)
      if (task.state !== 'packing' && task.state !== 'packed') return task
      if (await this.#isElsewhere(task)) {
        await this.#context.tasks.run((signal) => delay(POLL_MS, undefined, { signal }))
      } else if (task.state === 'packed') {
        return this.#start(task, () => this.#take(task))
      } else {
        const still = await this.#context.db.read.offlineTasks.findByToken(account, token)
        // Nothing goes on with it: its process has died, or the database was away when it began or ended.
        if (still?.id === task.id && still.state === 'packing') await this.#drop(task)
      }
    }
  }

  /** True while another process packs or posts the task. */
  #isElsewhere({ run }: OfflineTask): Promise<boolean> {
    return this.#context.run.isElsewhere(this.#context.db.read, run)
  }

  async #take(task: OfflineTask): Promise<OfflineTask> {
    const { db, run } = this.#context
    if (!(await db.transaction(({ offlineTasks }) => offlineTasks.take(task, run.name)))) throw new TokenInUse()
    return db.read.offlineTasks.mustFind(task.id)
  }

  /** True when a task with this token is posted or under way. */
  async isRepeated(account: number, token: string): Promise<boolean> {
    const task = await this.#context.db.read.offlineTasks.findByToken(account, token)
    if (this.#underwayWith(account, token) !== undefined) return true
    return task !== undefined && (task.state !== 'packing' || (await this.#isElsewhere(task)))
  }

  /** Returns undefined when the account has no task with this token posted or under way. */
  async progress(account: number, token: string): Promise<Progress | undefined> {
    const task = await this.#context.db.read.offlineTasks.findByToken(account, token)
    const underway = this.#underwayWith(account, token)
    if (underway !== undefined) return underway.progress
    if (task?.state === 'packing' && (await this.#isElsewhere(task))) {
      return task.progress === null ? LISTING : JSON.parse(task.progress)
    }
    if (task === undefined || task.state === 'packing') return undefined
    return this.#progressAt(task.state === 'packed' ? 'Settling' : 'Done', task)
  }

  #underwayWith(account: number, token: string): Underway | undefined {
    return [...this.#underway].find(({ ask }) => ask.account === account && ask.token === token)
  }

  /** All is packed in these phases. */
  async #progressAt(phase: 'Sending' | 'Settling' | 'Done', { id }: OfflineTask): Promise<Progress> {
    const { bytes, files } = await this.#context.db.read.offlineTasks.contentOf(id)
    return { phase, bytesDone: bytes, bytesTotal: bytes, filesDone: files, filesTotal: files }
  }

  /** A task of the account with what the platform says of it now, or said when it was reached last. */
  async show(account: number, uuid: string): Promise<OfflineTask | undefined> {
    const { offlineTasks } = this.#context.db.read
    const task = await offlineTasks.findByUuid(account, uuid)
    if (task?.state === 'posted') await this.#quietly(task, (signal) => this.#follow(task, signal))
    return offlineTasks.findByUuid(account, uuid)
  }

  urlOf(car: OfflineCar): string {
    return this.#context.urlOf(car)
  }

  /** The CAR that a provider may fetch now; undefined when there is none. Throws GatewayError. */
  async give(secret: string): Promise<{ readonly task: OfflineTask; readonly car: OfflineCar } | undefined> {
    const { db, tasks } = this.#context
    const { offlineTasks } = db.read
    const car = await offlineTasks.carOf(secret)
    if (car === undefined) return undefined
    const task = await offlineTasks.mustFind(car.task)
    if (task.state !== 'posted' && task.state !== 'packed') return undefined
    await tasks.run(async (signal) =>
      proposeToWinner(this.#context, task, car, await this.#client(task.account, signal), signal),
    )
    return { task, car }
  }

  /** Removes what a crash left of tasks that were being packed: the platform has none of them. */
  async recover(): Promise<void> {
    const { carFiles } = this.#context
    // Before the tasks: another process may begin one meanwhile.
    const left = new Set(await carFiles.list())
    for await (const task of this.#open()) {
      if (task.state === 'packing' && !(await this.#isElsewhere(task))) await this.#drop(task)
      left.delete(task.uuid)
    }
    for (const uuid of left) await carFiles.removeAll(uuid)
  }

  /**
   * Goes on with the tasks that are not over, now and in each epoch until the gateway stops.
   * @param url base URL of the gateway, from which providers fetch CARs
   */
  start(url: string): void {
    this.#url = url
    const { tasks, network, log } = this.#context
    const failed = (err: unknown) => log.warn({ err }, 'Could not go on with all offline deals.')
    tasks.every(Math.max(MIN_INTERVAL_MS, network.epochMs), (signal) => this.#goOn(signal), failed)
  }

  async #goOn(signal: AbortSignal): Promise<void> {
    // The platform says the same to all, and who follows one.
    const isFollower = await this.#context.upkeep.take()
    const isOfOthers = (task: OfflineTask) => task.run !== this.#context.run.name
    for await (const task of this.#open()) {
      signal.throwIfAborted()
      if (task.state === 'packing' && isOfOthers(task) && !(await this.#isElsewhere(task))) await this.#drop(task)
      if (task.state === 'posted' && isFollower) await this.#quietly(task, (signal) => this.#follow(task, signal))
      const isUnderway = [...this.#underway].some(({ id }) => id === task.id)
      if (task.state !== 'packed' || isUnderway || (await this.#isElsewhere(task))) continue
      await this.#quietly(task, () => this.#start(task, () => this.#take(task)))
    }
  }

  async *#open(): AsyncGenerator<OfflineTask> {
    const { offlineTasks } = this.#context.db.read
    for await (const tasks of pages('id', 0, (after) => offlineTasks.open(after, BATCH))) yield* tasks
  }

  /** What fails now is tried again later. */
  async #quietly(task: OfflineTask, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    const { tasks, log } = this.#context
    try {
      await tasks.run(work)
    } catch (error) {
      if (error instanceof TokenInUse) return
      if (!(error instanceof GatewayError)) throw error
      log.info({ uuid: task.uuid, reason: error.message }, 'Could not go on with an offline deal.')
    }
  }

  async #follow(task: OfflineTask, signal: AbortSignal): Promise<void> {
    await followTask(this.#context, task, await this.#client(task.account, signal))
  }

  #start(ask: OfflineAsk, begin: () => Promise<OfflineTask>): Promise<OfflineTask> {
    const account = `account ${ask.account}`
    if (!this.#slots.take(account, 1)) throw new GatewayError('TooManyOfflineDeals')
    const work = async (signal: AbortSignal): Promise<OfflineTask> => {
      const task = await begin()
      underway.id = task.id
      return this.#run(task, signal, underway)
    }
    const made = this.#context.tasks.run(work).finally(() => {
      this.#slots.give(account, 1)
      this.#underway.delete(underway)
    })
    const underway: Underway = { ask, made, progress: LISTING }
    this.#underway.add(underway)
    return made
  }

  async #run(begun: OfflineTask, signal: AbortSignal, underway: Underway): Promise<OfflineTask> {
    const { db, carFiles, run } = this.#context
    const { offlineTasks } = db.read
    try {
      const client = await this.#client(begun.account, signal)
      const publish = publisher(db, 'offlineTasks')
      const onProgress = (progress: Progress) => {
        underway.progress = progress
        publish(begun.id, progress)
      }
      const { maxPieceBytes } = underway.ask
      if (begun.state === 'packing') await packTask(this.#context, begun, { maxPieceBytes, onProgress, signal })
      onProgress(await this.#progressAt('Sending', begun))
      return await sendTask(this.#context, await offlineTasks.mustFind(begun.id), client, signal)
    } catch (error) {
      const refused = error instanceof GatewayError && error.kind === 'OfflineDealRefused'
      try {
        const now = await offlineTasks.find(begun.id)
        // The start after a stop removes what is being packed.
        if (now === undefined) await carFiles.removeAll(begun.uuid)
        else if ((now.state === 'packing' || refused) && !signal.aborted) await this.#drop(now)
        else await db.transaction((tables) => tables.offlineTasks.leave(begun.id, run.name))
      } catch (err) {
        this.#context.log.warn({ err, uuid: begun.uuid }, 'Could not remove an offline deal that has failed.')
      }
      throw error
    }
  }

  #begin(ask: OfflineAsk): Promise<OfflineTask> {
    const { db, clock, run } = this.#context
    return db.transaction(async ({ buckets, offlineTasks }) => {
      const { account, token } = ask
      if (token !== undefined && (await offlineTasks.findByToken(account, token)) !== undefined) throw new TokenInUse()
      const bucket = mustOwn(await buckets.find(ask.bucketName), ask)
      const asked = rfc3339(clock.now())
      return offlineTasks.mustFind(await offlineTasks.add(ask, randomUUID(), bucket.id, asked, run.name))
    })
  }

  /** Removes a task that the platform does not have. Continues where an interrupted call stopped. */
  async #drop(task: OfflineTask): Promise<void> {
    const { carFiles, db, run } = this.#context
    const { id, uuid } = task
    // Its process may only have been stopped: it must do no more.
    if (!(await db.transaction(({ offlineTasks }) => offlineTasks.take(task, run.name)))) return
    await carFiles.removeAll(uuid)
    for (const deal of await db.read.offlineTasks.deals(id)) await dropDeal(this.#context, deal)
    await db.transaction(({ offlineTasks }) => offlineTasks.remove(id))
  }

  /** Throws GatewayError NoPlatformUser. */
  async #client(account: number, signal: AbortSignal): Promise<PlatformClient> {
    const { login, db } = this.#context
    const user = account === FIRST ? undefined : await db.read.accounts.userOf(account)
    const token = account !== FIRST && user === undefined ? undefined : await login.tokenFor(user)
    if (token === undefined) throw new GatewayError('NoPlatformUser')
    return new PlatformClient(this.#platform, token, signal)
  }
}

function mustAskTheSame(first: OfflineAsk, second: OfflineAsk): void {
  const same =
    first.bucketName === second.bucketName &&
    first.prefix.equals(second.prefix) &&
    JSON.stringify(first.form) === JSON.stringify(second.form)
  if (!same) throw new GatewayError('TokenReused')
}
