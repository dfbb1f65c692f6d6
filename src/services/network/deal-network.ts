import { join } from 'node:path'
import { DiskReserve, withReserve } from '../../common/disk-reserve.js'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { type Database, openDatabase, Writer } from '../database.js'
import { abortableLimit } from '../failure-counts.js'
import type { ServicesLog } from '../log.js'
import { type DealRecord, madeDeal, stateOf } from './deal-record.js'
import { adaptDeals, DealTable, dealSchema } from './deal-table.js'
import { EpochClock, type EpochClockOptions, epochSchema } from './epoch-clock.js'
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
import { DealBook } from './proposal.js'
import type { Staging } from './staging.js'
import { Wallets } from './wallet.js'

export interface DealNetworkOptions extends EpochClockOptions {
  /** Folder for this network alone; created when it is missing. */
  readonly folder: string
  readonly pack: Pack
  readonly commit: Commit
  readonly log: ServicesLog
  /** Most deals packed at the same time, and sent by networks that send them; default 2. */
  readonly concurrency?: number
}

const DEFAULT_CONCURRENCY = 2

/**
 * Opens the database of a network in its folder, which no other instance uses, and then the network. Rejects when the
 * folder holds files of something else.
 * @param schema of the tables besides those of deals and of the time
 */
export async function openDealNetwork<N extends DealNetwork>(
  folder: string,
  schema: string,
  make: (db: Database, writer: Writer) => N,
): Promise<N> {
  makePrivateFolder(folder)
  const file = join(folder, 'network.db')
  const db = openDatabase(file, dealSchema + epochSchema + schema, adaptDeals)
  try {
    const reserve = new DiskReserve(file)
    const network = withReserve(reserve, () => make(db, new Writer(db, reserve)))
    reserve.hold()
    await network.open()
    return network
  } catch (error) {
    db.close()
    throw error
  }
}

/** A network that records its deals in a database, signs their proposals and counts epochs. */
export abstract class DealNetwork {
  protected readonly log: ServicesLog
  protected readonly writer: Writer
  protected readonly wallets: Wallets
  protected readonly epochs: EpochClock
  protected readonly deals: DealTable
  protected readonly packer: DealPacker
  protected readonly book: DealBook
  protected readonly lifetime = new Lifetime()
  readonly #db: Database
  #stopped: Promise<void> | undefined

  /** @param staging folder for the CARs of deals in the making */
  constructor(db: Database, writer: Writer, staging: Staging, options: DealNetworkOptions) {
    const { folder, pack, commit, log, concurrency = DEFAULT_CONCURRENCY } = options
    this.#db = db
    this.log = log
    this.writer = writer
    this.wallets = new Wallets(folder)
    this.epochs = new EpochClock(db, writer, options)
    this.deals = new DealTable(db)
    this.book = new DealBook(this.deals, log)
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

  dealTotals(): DealTotals[] {
    return this.deals.totals()
  }

  async pack(request: PackRequest): Promise<PackedCar> {
    this.lifetime.check()
    return this.packer.pack(request, this.lifetime.until(request.signal))
  }

  async deal(request: DealRequest): Promise<MadeDeal> {
    this.lifetime.check()
    const signal = this.lifetime.until(request.signal)
    return this.book.deal(request.reference, () => this.make(request, signal), signal)
  }

  async find(reference: string): Promise<MadeDeal | undefined> {
    this.lifetime.check()
    return this.book.find(reference)
  }

  async status(dealCid: string): Promise<DealStatus> {
    const record = this.record(dealCid)
    const epoch = this.epoch()
    return { ...madeDeal(record), ...stateOf(record, epoch), epoch }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.end().then(() => {
      this.writer.close()
      this.#db.close()
    })
    return this.#stopped
  }

  /** Rejects with NetworkError NoSuchDeal, or Unavailable when the network has stopped. */
  protected record(dealCid: string): DealRecord {
    this.lifetime.check()
    return this.book.record(dealCid)
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
