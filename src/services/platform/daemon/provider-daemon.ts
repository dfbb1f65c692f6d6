import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { PeriodicTask } from '../../../common/periodic-task.js'
import type { Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { Network } from '../../network/network.js'
import { type DealTable, type DealUpdate, DOWNLOADED, type PlatformDeal, TO_FETCH } from '../deals/deal-table.js'
import { writeUpdate } from '../deals/write-update.js'
import type { TaskTable } from '../tasks/task-table.js'
import { FetchError, fetchCar } from './fetch-car.js'

/** Shortest interval between two looks for deals, ms. */
const MIN_INTERVAL_MS = 1000
/** Most CARs fetched at the same time. */
const AT_ONCE = 2
/** Longest wait for the next byte of a CAR, ms. */
const IDLE_MS = 60_000

export interface DaemonParts {
  readonly tasks: TaskTable
  readonly deals: DealTable
  readonly writer: Writer
  readonly network: Network
  /** Unix seconds. */
  readonly seconds: () => number
  readonly log: ServicesLog
}

/**
 * Does for the providers of the network what the program of a real provider does: it fetches the CARs of their deals,
 * verifies size and MD5, and writes each state before and after. A fetch that a crash cut off begins again.
 */
export class ProviderDaemon {
  readonly #parts: DaemonParts
  readonly #folder: string
  readonly #task: PeriodicTask
  readonly #stopping = new AbortController()
  #again = false

  /** @param folder for the CARs; created when it is missing */
  constructor(parts: DaemonParts, folder: string) {
    this.#parts = parts
    this.#folder = folder
    this.#task = new PeriodicTask(
      () => this.#fetchAll(),
      (err) => {
        if (!this.#stopping.signal.aborted) parts.log.warn({ err }, 'Could not fetch all CARs of deals.')
      },
    )
  }

  start(): void {
    this.#task.start(Math.max(MIN_INTERVAL_MS, this.#parts.network.epochSeconds * 1000))
  }

  /** Call it when a provider has new deals. */
  async kick(): Promise<void> {
    // A run in progress may be past those deals.
    this.#again = true
    while (this.#again && !this.#stopping.signal.aborted) await this.#task.run()
  }

  /** Interrupts running fetches; the next start begins them again. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#task.stop()
  }

  async #fetchAll(): Promise<void> {
    this.#again = false
    const { network, deals } = this.#parts
    const most = new Map(
      (await network.providers())
        .filter(({ status }) => status === 'Active')
        .map(({ minerId, maxPieceSize }) => [minerId, maxPieceSize]),
    )
    let after = 0
    const next = (): PlatformDeal | undefined => {
      for (;;) {
        const deal = this.#stopping.signal.aborted ? undefined : deals.nextToFetch(after)
        if (deal === undefined) return undefined
        after = deal.id
        if (deal.minerId !== null && most.has(deal.minerId)) return deal
      }
    }
    // A deal that the disk refuses holds up no other one.
    let failure: { readonly error: unknown } | undefined
    const work = async (): Promise<void> => {
      for (let deal = next(); deal !== undefined; deal = next()) {
        await this.#fetch(deal, most.get(deal.minerId ?? '') ?? 0).catch((error) => {
          failure ??= { error }
        })
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    if (failure !== undefined) throw failure.error
  }

  async #fetch(deal: PlatformDeal, most: number): Promise<void> {
    const { id, minerId, md5, fileSize: size, fileSourceUrl: url } = deal
    const folder = join(this.#folder, minerId ?? '')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (!(await this.#write(id, TO_FETCH, { status: 'Downloading', note: '' }))) return
    const file = join(folder, `${id}.car`)
    const write = (update: DealUpdate): Promise<boolean> => this.#write(id, ['Downloading'], update)
    try {
      const fetched = await fetchCar({ url, md5, size, most }, file, IDLE_MS, this.#stopping.signal)
      const update = { status: DOWNLOADED, filePath: `${minerId}/${id}.car`, fileSize: fetched }
      if (!(await write(update))) await rm(file, { force: true })
    } catch (error) {
      if (!(error instanceof FetchError)) throw error
      await write({ status: 'DownloadFailed', note: error.message })
    }
  }

  /** Writes a step of a deal. Returns false when its owner has written another state than those expected: it stays. */
  #write(id: number, expected: readonly string[], update: DealUpdate): Promise<boolean> {
    const { deals, writer, network, seconds } = this.#parts
    return writer.run(() => {
      if (!expected.includes(deals.find(id)?.status ?? '')) return false
      writeUpdate(this.#parts, id, update, seconds(), network.epoch())
      return true
    })
  }
}
