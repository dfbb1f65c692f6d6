import { join } from 'node:path'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { abortableLimit } from '../failure-counts.js'
import { explained } from '../folder-lock.js'
import type { ServicesLog } from '../log.js'
import type { Database, Schema } from '../store/database.js'
import { openStore } from '../store/open.js'
import type { StoreMetrics } from '../store/store-metrics.js'
import { type DealRecord, madeDeal, stateOf } from './deal-record.js'
import type { DealTable } from './deal-table.js'
import { EpochClock, type EpochClockOptions, type EpochTable } from './epoch-clock.js'
import { Lifetime } from './expiry.js'
import {
  type Commit,
  type DealRequest,
  type DealStatus,
  type DealTotals,
  type MadeDeal,
  NetworkError,
  type Pack,
  type PackedCar,
  type PackedFile,
  type PackRequest,
} from './network.js'
import { DealPacker } from './packing.js'
import { DealRegistry } from './proposal.js'
import type { Staging } from './staging.js'
import { Wallets, type WalletTable } from './wallet.js'

export interface DealNetworkOptions extends EpochClockOptions {
  /** Folder for this network; created when it is missing. */
  readonly folder: string
  /** URL of the PostgreSQL database that holds the tables and the keys of wallets; default SQLite and files. */
  readonly database?: string | undefined
  readonly metrics?: StoreMetrics | undefined
  readonly pack: Pack
  readonly commit: Commit
  readonly log: ServicesLog
  /** Most deals packed at the same time, and sent by networks that send them; default 2. */
  readonly concurrency?: number
}

const DEFAULT_CONCURRENCY = 2

interface DealTables {
  readonly deals: DealTable
  readonly epochs: EpochTable
  readonly wallets: WalletTable
}

/** What a network has when its database is open. */
export interface DealBasis<T extends DealTables = DealTables> {
  readonly db: Database<T>
  readonly epochs: EpochClock
  readonly wallets: Wallets
}

/** Opens the database of a network, and then the network. Rejects when the folder holds files of something else. */
export async function openDealNetwork<T extends DealTables, N extends DealNetwork>(
  schema: Schema<T>,
  options: DealNetworkOptions,
  make: (basis: DealBasis<T>) => N,
): Promise<N> {
  const { folder, database, log, metrics } = options
  makePrivateFolder(folder)
  const file = join(folder, 'network.db')
  const db = await openStore(schema, { file, database, reserve: true, metrics }, log)
  try {
    const epochs = await EpochClock.open(db, options)
    const wallets = await Wallets.open({ db, folder, keys: database === undefined ? 'files' : 'table' })
    const network = make({ db, epochs, wallets })
    await network.open()
    return network
  } catch (error) {
    await db.close()
    throw explained(file, error)
  }
}

/** A network that records its deals in a database, signs their proposals and counts epochs. */
export abstract class DealNetwork {
  protected readonly log: ServicesLog
  protected readonly wallets: Wallets
  protected readonly epochs: EpochClock
  protected readonly packer: DealPacker
  protected readonly registry: DealRegistry
  protected readonly lifetime = new Lifetime()
  readonly #db: Database<DealTables>
  #stopped: Promise<void> | undefined

  /** @param staging folder for the CARs of deals in the making */
  constructor({ db, epochs, wallets }: DealBasis, staging: Staging, options: DealNetworkOptions) {
    const { pack, commit, log, concurrency = DEFAULT_CONCURRENCY } = options
    this.#db = db
    this.log = log
    this.wallets = wallets
    this.epochs = epochs
    this.registry = new DealRegistry(db, log)
    this.packer = new DealPacker({ pack, commit, staging, slots: abortableLimit(concurrency) })
  }

  /** Removes what interrupted deals left, and begins to drop ended ones. */
  abstract open(): Promise<void>

  /** Makes a deal that is not recorded yet. */
  protected abstract make(request: DealRequest, signal: AbortSignal): Promise<DealRecord>

  /** Ends what the network does, before its database is closed. */
  protected abstract end(): Promise<void>

  get wallet(): string {
    return this.wallets.main.address
  }

  get epochSeconds(): number {
    return this.epochs.epochSeconds
  }

  get epochMs(): number {
    return this.epochs.epochMs
  }

  epoch(): number {
    return this.epochs.epoch()
  }

  dealTotals(): Promise<DealTotals[]> {
    return this.#db.read.deals.totals()
  }

  async pack(request: PackRequest): Promise<PackedCar> {
    this.lifetime.check()
    return this.packer.pack(request, this.lifetime.until(request.signal))
  }

  async deal(request: DealRequest): Promise<MadeDeal> {
    this.lifetime.check()
    const signal = this.lifetime.until(request.signal)
    return this.registry.deal(request.reference, () => this.make(request, signal), signal)
  }

  async find(reference: string): Promise<MadeDeal | undefined> {
    this.lifetime.check()
    return this.registry.find(reference)
  }

  /** Asks `find` alone: no other process uses the network, so none is at work on a deal that this one does not make. */
  settle(reference: string): Promise<MadeDeal | undefined> {
    return this.find(reference)
  }

  async status(dealCid: string): Promise<DealStatus> {
    const record = await this.record(dealCid)
    const epoch = this.epoch()
    return { ...madeDeal(record), ...stateOf(record, epoch), epoch }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.end().then(() => this.#db.close())
    return this.#stopped
  }

  /** Rejects with NetworkError NoSuchDeal, or Unavailable when the network has stopped. */
  protected async record(dealCid: string): Promise<DealRecord> {
    this.lifetime.check()
    return this.registry.record(dealCid)
  }

  protected logLeftovers(removed: number): void {
    if (removed > 0) this.log.info({ removed }, 'Removed leftovers of interrupted deals.')
  }

  /** Passes on the bytes of a file of a deal. Rejects with NetworkError NotRetrievable if they are more or fewer. */
  protected async *exactly(chunks: AsyncIterable<Uint8Array>, { cid, size }: PackedFile, dealCid: string) {
    let given = 0
    for await (const chunk of chunks) {
      given += chunk.length
      if (given > size) break
      yield chunk
    }
    if (given !== size) {
      throw new NetworkError('NotRetrievable', `${cid} in deal ${dealCid} does not have ${size} bytes.`)
    }
  }
}
