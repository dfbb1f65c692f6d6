import type { Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import { type MadeDeal, type Network, NetworkError, type OfflineDeals, type PackedCar } from '../../network/network.js'
import {
  DEAL_ACTIVE,
  type DealTable,
  type DealUpdate,
  FILE_IMPORTED,
  FILE_IMPORTING,
  READY_FOR_IMPORT,
} from '../deals/deal-table.js'
import { writeUpdate } from '../deals/write-update.js'
import type { TaskTable } from '../tasks/task-table.js'
import type { CarFolder } from './car-folder.js'
import type { DealToImport, ImportTable } from './import-table.js'
import { proposeOwn } from './own-deal.js'

export interface ImporterParts {
  readonly tasks: TaskTable
  readonly deals: DealTable
  readonly imports: ImportTable
  readonly writer: Writer
  readonly network: Network
  /** Unix seconds. */
  readonly seconds: () => number
  readonly log: ServicesLog
}

/** Failures that say nothing about the deal: the provider tries again. */
const PASSING: readonly NetworkError['code'][] = ['ProviderOffline', 'Unavailable']

/**
 * Gives the providers of the network the CARs that they have fetched, one after the other, and follows their deals
 * until they are active. Each step is durable before the next; one that a crash cut off is done again, with the same
 * deal.
 */
export class Importer {
  readonly #parts: ImporterParts
  readonly #folder: CarFolder
  readonly #signal: AbortSignal
  #running: Promise<void> | undefined
  #again = false

  constructor(parts: ImporterParts, folder: CarFolder, signal: AbortSignal) {
    this.#parts = parts
    this.#folder = folder
    this.#signal = signal
  }

  /** True when an import is to go on at this epoch. */
  isDue(): boolean {
    const { imports, network } = this.#parts
    return network.offline !== undefined && imports.anyDue(network.epoch())
  }

  /** Goes on with all imports that are due, in the background. */
  kick(): void {
    this.#again = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  /** Resolves when no import runs. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    const { network, imports, log } = this.#parts
    const { offline } = network
    try {
      while (this.#again && offline !== undefined && !this.#signal.aborted) {
        this.#again = false
        await this.#folder.open()
        for (let deal = imports.next(network.epoch()); deal !== undefined; deal = imports.next(network.epoch())) {
          this.#signal.throwIfAborted()
          await this.#goOn(offline, deal)
        }
      }
    } catch (err) {
      if (!this.#signal.aborted) log.warn({ err }, 'Could not import all CARs of deals.')
    }
  }

  async #goOn(offline: OfflineDeals, deal: DealToImport): Promise<void> {
    try {
      if (deal.status === FILE_IMPORTED) await this.#follow(deal)
      else await this.#import(offline, deal)
    } catch (error) {
      this.#signal.throwIfAborted()
      if (isMissing(error)) return void (await this.#write(this.#current(deal), { status: 'Waiting', note: '' }))
      if (!(error instanceof NetworkError)) {
        await this.#postpone(deal)
        throw error
      }
      if (PASSING.includes(error.code)) await this.#postpone(deal)
      else await this.#fail(deal, error.message)
    }
  }

  async #import(offline: OfflineDeals, deal: DealToImport): Promise<void> {
    const { network } = this.#parts
    const again = { status: FILE_IMPORTING, due: network.epoch() }
    if (deal.status === READY_FOR_IMPORT && !(await this.#write(deal, again))) return
    const car = await offline.inspect(this.#folder.fileOf(deal.minerId, deal.id), this.#signal)
    requireNamed(deal, car)
    const known = deal.dealCid !== null && offline.knows(deal.minerId, deal.dealCid)
    const proposal = known ? undefined : await this.#proposalOf(offline, deal, car)
    const importing = { ...deal, status: FILE_IMPORTING }
    // The deal must be known before the provider has it: a repeated import would make another.
    if (proposal !== undefined && !(await this.#write(importing, { ...again, proposal }))) return
    const due = await offline.import(proposal?.dealCid ?? deal.dealCid ?? '', car, this.#signal)
    await this.#write(importing, { status: FILE_IMPORTED, due })
  }

  /** The client's deal that waits for this CAR, or one that the provider makes. */
  async #proposalOf(offline: OfflineDeals, deal: DealToImport, car: PackedCar): Promise<MadeDeal> {
    const { imports, network } = this.#parts
    const waiting = offline.waitingFor(deal.minerId, car.pieceCid).find(({ dealCid }) => !imports.isTaken(dealCid))
    return waiting ?? proposeOwn(network, offline, deal, car, this.#signal)
  }

  async #follow(deal: DealToImport): Promise<void> {
    const { state, message } = await this.#parts.network.status(deal.dealCid ?? '')
    if (state === 'StorageDealActive') {
      if (await this.#write(deal, { status: DEAL_ACTIVE, note: '' })) await this.#folder.remove(deal)
    } else if (state === 'StorageDealError' || state === 'StorageDealExpired') await this.#fail(deal, message)
    else await this.#postpone(deal)
  }

  async #fail(deal: DealToImport, note: string): Promise<void> {
    this.#parts.log.info({ deal: deal.id, reason: note }, 'Could not import the CAR of a deal.')
    if (await this.#write(this.#current(deal), { status: 'ImportFailed', note })) await this.#folder.remove(deal)
  }

  /** The deal after the steps of this import. */
  #current(deal: DealToImport): DealToImport {
    const begun = this.#parts.deals.find(deal.id)?.status === FILE_IMPORTING
    return begun ? { ...deal, status: FILE_IMPORTING } : deal
  }

  #postpone({ id }: DealToImport): Promise<void> {
    const { imports, network, writer } = this.#parts
    return writer.run(() => imports.postpone(id, network.epoch() + 1))
  }

  /** Returns false when the owner has written another state meanwhile: it stays. */
  #write({ id, status }: DealToImport, update: DealUpdate): Promise<boolean> {
    const { deals, writer, network, seconds } = this.#parts
    return writer.run(() => {
      if (deals.find(id)?.status !== status) return false
      writeUpdate(this.#parts, id, update, seconds(), network.epoch())
      return true
    })
  }
}

/** Throws NetworkError unless the CAR is the one that the task names. */
function requireNamed({ payloadCid, pieceCid }: DealToImport, car: PackedCar): void {
  if (payloadCid !== null && payloadCid !== car.dataCid) {
    throw new NetworkError('DataRefused', `The root of the CAR is not ${payloadCid}, which the task names.`)
  }
  if (pieceCid !== null && pieceCid !== car.pieceCid) {
    throw new NetworkError('DataRefused', `The CAR is not the piece ${pieceCid}, which the task names.`)
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'
}
