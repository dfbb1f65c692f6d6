import { rm } from 'node:fs/promises'
import type { Cidr } from '../../../common/cidr.js'
import { isDiskFull } from '../../../common/disk-reserve.js'
import { PeriodicTask } from '../../../common/time.js'
import type { ServicesLog } from '../../log.js'
import type { Network } from '../../network/network.js'
import { type Database, DatabaseUnavailableError, type Lease } from '../../store/database.js'
import type { PlatformTables } from '../store.js'
import { type DealUpdate, DOWNLOADED, TO_FETCH } from '../tasks/deal-table.js'
import { writeUpdate } from '../tasks/progress.js'
import { blocks } from './addresses.js'
import { CarFolder, type CarRoom } from './car-folder.js'
import { FetchError, type FetchTimes, fetchCar, NoRoomError } from './fetch-car.js'
import { type DealToFetch, FetchQueue } from './fetch-queue.js'
import { Importer } from './importer.js'

/** Shortest interval between two looks for deals, ms, and the longest for those that other processes have added. */
const MIN_INTERVAL_MS = 1000
const SHARED_INTERVAL_MS = 5000

const DOWNLOADING = ['Downloading']

/** Says nothing of the server: a poster could look through the network of this machine with it. */
const FAILED = 'The CAR cannot be fetched, or is not the one that the task names.'

const fetchTimes: FetchTimes = {
  idleMs: 60_000,
  graceMs: 60_000,
  bytesPerSecond: 64 * 1024,
  now: () => performance.now(),
}

interface DaemonDeps {
  readonly lease: Lease<PlatformTables>
  readonly network: Network
  readonly seconds: () => number
  readonly log: ServicesLog
}

interface DaemonOptions {
  /** Most bytes of all CARs. */
  readonly mostBytes: number
  /** Blocks of private addresses, and of addresses of this machine, from which CARs may come. */
  readonly networks: readonly string[]
}

/**
 * Does for the providers of the network what the program of a real provider does: it fetches the CARs of their deals,
 * verifies size and MD5, imports them, and writes each state before and after. A fetch that a crash cut off begins
 * again. A CAR that finds no room waits; one that its provider has imported or given up is removed.
 *
 * One process at a time does it. The next one reads all it needs from the database. A CAR in the folder of the former
 * process alone is fetched again.
 */
export class ProviderDaemon {
  readonly #deps: DaemonDeps
  readonly #db: Database<PlatformTables>
  readonly #folder: CarFolder
  readonly #queue: FetchQueue
  readonly #allowed: readonly Cidr[]
  readonly #importer: Importer
  readonly #task: PeriodicTask
  readonly #stopping = new AbortController()
  readonly #running = new Set<Promise<void>>()
  /** Most bytes that each active provider takes. */
  #most: ReadonlyMap<string, number> = new Map()
  #beginning: Promise<void> = Promise.resolve()
  #again = false
  #started = false
  #own: readonly URL[] = []

  /**
   * Throws RangeError for what is no block of addresses.
   * @param folder for the CARs; created when it is missing
   */
  constructor(deps: DaemonDeps, folder: string, { mostBytes, networks }: DaemonOptions) {
    this.#deps = deps
    this.#db = deps.lease.db
    this.#allowed = blocks(...networks)
    this.#folder = new CarFolder(folder, mostBytes, this.#db)
    this.#queue = new FetchQueue(this.#db.read.fetches)
    this.#importer = new Importer(deps, this.#folder, this.#stopping.signal)
    this.#task = new PeriodicTask(
      () => this.#look(),
      (err) => this.#warn(err),
    )
  }

  /** @param own URLs of the servers of this machine from which CARs may come */
  start(own: readonly string[]): void {
    this.#started = true
    this.#own = own.map((url) => new URL(url))
    const interval = Math.max(MIN_INTERVAL_MS, this.#deps.network.epochMs)
    this.#task.start(this.#db.shared ? Math.min(interval, SHARED_INTERVAL_MS) : interval)
  }

  /** Call it when a provider has new deals. Does nothing before the start, which looks for all of them. */
  async kick(): Promise<void> {
    if (!this.#started) return
    // A run in progress may be past those deals.
    this.#again = true
    while (this.#again && !this.#stopping.signal.aborted) await this.#task.run()
  }

  /** Goes on in the background with what is due at this epoch. */
  async catchUp(): Promise<void> {
    try {
      if (this.#started && this.#deps.lease.held() && (await this.#importer.isDue())) this.#importer.kick()
    } catch (error) {
      this.#warn(error)
    }
  }

  /** Interrupts running fetches; the next start begins them again. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#task.stop()
    await this.#beginning.catch(() => {})
    await this.#ended()
    await this.#deps.lease.release()
  }

  async #ended(): Promise<void> {
    await this.#importer.idle()
    await Promise.all(this.#running)
  }

  /** Returns false when another process has this work. */
  async #take(): Promise<boolean> {
    const { lease } = this.#deps
    if (lease.held()) return true
    await this.#ended()
    if (!(await lease.take())) return false
    this.#folder.close()
    return true
  }

  async #look(): Promise<void> {
    this.#again = false
    if (!(await this.#take())) return
    await this.#folder.open()
    await this.#inTurn(() => this.#folder.removeSuperfluous((id) => this.#queue.isRunning(id)))
    const providers = await this.#deps.network.providers()
    const active = providers.filter(({ status }) => status === 'Active')
    this.#most = new Map(active.map(({ minerId, maxPieceSize }) => [minerId, maxPieceSize]))
    await this.#begin([...this.#most.keys()])
    await this.catchUp()
  }

  /**
   * Begins as many fetches as may run; the end of each begins the next.
   * @param providers begins again with all deals of these
   */
  #begin(providers?: readonly string[]): Promise<void> {
    return this.#inTurn(() => this.#beginAll(providers))
  }

  /** One after the other: no fetch begins while CARs are removed. */
  #inTurn(run: () => Promise<void>): Promise<void> {
    const begun = this.#beginning.catch(() => {}).then(run)
    this.#beginning = begun
    return begun
  }

  async #beginAll(providers: readonly string[] | undefined): Promise<void> {
    if (providers !== undefined) this.#queue.restart(providers)
    while (!this.#stopping.signal.aborted && this.#deps.lease.held()) {
      const deal = await this.#queue.take()
      if (deal === undefined) return
      const run = this.#handle(deal).finally(() => this.#running.delete(run))
      this.#running.add(run)
    }
  }

  async #handle(deal: DealToFetch): Promise<void> {
    try {
      await this.#fetch(deal)
    } catch (error) {
      // The next deals go on, unless they would meet the same.
      if (isDiskFull(error)) this.#queue.pauseAll()
      this.#warn(error)
    }
    this.#queue.end(deal)
    try {
      await this.#begin()
    } catch (error) {
      this.#warn(error)
    }
  }

  async #fetch(deal: DealToFetch): Promise<void> {
    const { id, minerId, user, stored, fileSize } = deal
    if (stored !== null) await this.#folder.remove({ id, minerId, stored })
    const most = Math.min(this.#most.get(minerId) ?? 0, this.#folder.most)
    const room = this.#folder.room()
    if (fileSize !== null && fileSize <= most && !room.take(fileSize)) return this.#queue.pause(user)
    // Its owner, or an end of another fetch that was not known yet.
    if (!(await this.#write(id, TO_FETCH, { status: 'Downloading', note: '' }))) return room.free()
    const file = this.#folder.fileOf(minerId, id)
    let kept = false
    try {
      kept = await this.#fetchInto(file, deal, most, room)
    } catch (error) {
      // The row may name the file. Its room counts until the next start.
      kept = error instanceof DatabaseUnavailableError
      throw error
    } finally {
      if (!kept) {
        room.free()
        await rm(file, { force: true })
      }
    }
  }

  /** Returns true when the provider has the CAR. */
  async #fetchInto(file: string, deal: DealToFetch, most: number, room: CarRoom): Promise<boolean> {
    const { id, minerId, user, md5, fileSize, fileSourceUrl: url } = deal
    const { log, lease } = this.#deps
    try {
      const reserve = (bytes: number): boolean => room.take(bytes)
      const car = { url, md5, size: fileSize, most, reserve, isWanted: () => lease.held() }
      const asking = { ...fetchTimes, servers: { allowed: this.#allowed, own: this.#own } }
      const size = await fetchCar(car, file, asking, AbortSignal.any([this.#stopping.signal, lease.signal]))
      const update = { status: DOWNLOADED, filePath: `${minerId}/${id}.car`, fileSize: size }
      return await this.#write(id, DOWNLOADING, update, ({ fetches }) => fetches.store(id, room.bytes))
    } catch (error) {
      if (!(error instanceof FetchError)) throw error
      const hasRoom = !(error instanceof NoRoomError)
      if (hasRoom) log.info({ deal: id, reason: error.message }, 'Could not fetch the CAR of a deal.')
      else this.#queue.pause(user)
      await this.#write(id, DOWNLOADING, hasRoom ? { status: 'DownloadFailed', note: FAILED } : { status: 'Waiting' })
      return false
    }
  }

  /**
   * Writes a step of a deal. Returns false when its owner has written another state than those expected: it stays.
   * @param also runs in the same transaction
   */
  #write(
    id: number,
    expected: readonly string[],
    update: DealUpdate,
    also?: (tables: PlatformTables) => Promise<void>,
  ): Promise<boolean> {
    const { network, seconds } = this.#deps
    return this.#db.transaction(async (tables) => {
      if (!expected.includes((await tables.deals.find(id))?.status ?? '')) return false
      await writeUpdate(tables, id, update, seconds(), network.epoch())
      await also?.(tables)
      return true
    })
  }

  #warn(err: unknown): void {
    if (!this.#stopping.signal.aborted) this.#deps.log.warn({ err }, 'Could not fetch all CARs of deals.')
  }
}
