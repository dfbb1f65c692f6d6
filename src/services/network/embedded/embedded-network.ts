import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DiskReserve, withReserve } from '../../../common/disk-reserve.js'
import { makePrivateFolder } from '../../../common/files/private-file.js'
import { Clock } from '../../clock.js'
import { type Database, openDatabase, Writer } from '../../database.js'
import { abortableLimit } from '../../failure-counts.js'
import type { ServicesLog } from '../../log.js'
import { type DealRecord, deliverableFrom, madeDeal, stateOf } from '../deals/deal-record.js'
import { adaptDeals, DealTable, dealSchema } from '../deals/deal-table.js'
import { DealBook } from '../deals/proposal.js'
import {
  type Commit,
  type DealRequest,
  type DealStatus,
  type DealTotals,
  type MadeDeal,
  type Network,
  NetworkError,
  type OfflineDeals,
  type Pack,
  type PackedCar,
  type PackedFile,
  type PackRequest,
  type Provider,
  type ProviderChange,
  type ReadFromCar,
} from '../network.js'
import { DealPacker } from '../packing.js'
import { EpochClock, type EpochClockOptions, epochSchema } from '../units/epoch-clock.js'
import { Expiry, Lifetime } from '../units/expiry.js'
import { Wallets } from '../wallet.js'
import { Cars } from './cars.js'
import { catalogue, type ProviderTerms } from './catalogue.js'
import { createControl, Faults, faultSchema, type NetworkControl } from './control.js'
import { DealMaker, Proposer } from './deal-maker.js'
import { EmbeddedOfflineDeals } from './offline-deals.js'
import { Providers, providerSchema } from './providers.js'

export interface EmbeddedNetworkOptions extends EpochClockOptions {
  /** Folder for this network alone; created when it is missing. */
  readonly folder: string
  readonly pack: Pack
  readonly commit: Commit
  readonly readFromCar: ReadFromCar
  readonly log: ServicesLog
  /** Providers to add to those that the network already has; default a list of eight. */
  readonly providers?: readonly ProviderTerms[]
  /** Most deals packed at the same time; default 2. */
  readonly atOnce?: number
}

/**
 * A network on the local disk. Its providers are folders and rules; its content ids, pieces, proposals and signatures
 * are real.
 */
export interface EmbeddedNetwork extends Network {
  readonly kind: 'embedded'
  readonly control: NetworkControl
  readonly offline: OfflineDeals
  /**
   * Returns the signed proposal of a deal, the DAG-CBOR block whose CID is `dealCid`; `verifyProposal` decodes it.
   * Rejects with NetworkError NoSuchDeal.
   */
  proposal(dealCid: string): Promise<Uint8Array>
}

const DEFAULT_AT_ONCE = 2

/** Shortest interval at which ended deals are dropped, ms. */
const MIN_EXPIRY_MS = 1000

/** Delay of a slow provider before each chunk, ms. */
const SLOW_CHUNK_MS = 100

/**
 * Opens the network in a folder that no other instance uses. All of its state survives `kill -9`; leftovers of
 * interrupted deals are removed first. Rejects when the folder holds files of something else, or an option is out of
 * bounds.
 */
export async function openEmbeddedNetwork(options: EmbeddedNetworkOptions): Promise<EmbeddedNetwork> {
  makePrivateFolder(options.folder)
  const schema = dealSchema + epochSchema + providerSchema + faultSchema
  const file = join(options.folder, 'network.db')
  const db = openDatabase(file, schema, adaptDeals)
  try {
    const reserve = new DiskReserve(file)
    const network = withReserve(reserve, () => new FolderNetwork(db, options, reserve))
    reserve.hold()
    await network.open()
    return network
  } catch (error) {
    db.close()
    throw error
  }
}

class FolderNetwork implements EmbeddedNetwork {
  readonly kind = 'embedded'
  readonly control: NetworkControl
  readonly offline: EmbeddedOfflineDeals
  readonly #db: Database
  readonly #log: ServicesLog
  readonly #readFromCar: ReadFromCar
  readonly #writer: Writer
  readonly #wallets: Wallets
  readonly #epochs: EpochClock
  readonly #providers: Providers
  readonly #faults: Faults
  readonly #cars: Cars
  readonly #deals: DealTable
  readonly #packer: DealPacker
  readonly #maker: DealMaker
  readonly #expiry: Expiry
  readonly #book: DealBook
  readonly #lifetime = new Lifetime()
  #stopped: Promise<void> | undefined

  constructor(db: Database, options: EmbeddedNetworkOptions, reserve: DiskReserve) {
    const { folder, pack, commit, log } = options
    this.#db = db
    this.#log = log
    this.#readFromCar = options.readFromCar
    this.#writer = new Writer(db, reserve)
    this.#wallets = new Wallets(folder)
    this.#epochs = new EpochClock(db, this.#writer, options)
    this.#providers = new Providers(db, options.providers ?? catalogue)
    this.#faults = new Faults(db, this.#writer)
    this.#cars = new Cars(folder, log)
    this.#deals = new DealTable(db)
    this.#book = new DealBook(this.#deals, log)
    const drop = (custodies: readonly string[]) => custodies.forEach((custody) => void this.#cars.discard(custody))
    this.#expiry = new Expiry(this.#deals, this.#writer, drop, this.#epochs, log)
    const { staging } = this.#cars
    this.#packer = new DealPacker({
      pack,
      commit,
      staging,
      slots: abortableLimit(options.atOnce ?? DEFAULT_AT_ONCE),
    })
    const proposer = new Proposer({
      providers: this.#providers,
      faults: this.#faults,
      epochs: this.#epochs,
      clock: new Clock(),
      wallets: this.#wallets,
    })
    const parts = { proposer, faults: this.#faults, cars: this.#cars, deals: this.#deals, writer: this.#writer }
    this.#maker = new DealMaker({ ...parts, packer: this.#packer })
    this.offline = new EmbeddedOfflineDeals({
      ...parts,
      book: this.#book,
      epochs: this.#epochs,
      lifetime: this.#lifetime,
      commit,
    })
    this.control = createControl(this.#providers, this.#faults, this.#cars, this.#epochs, this.#expiry)
  }

  async open(): Promise<void> {
    const minerIds = this.#providers.all().map(({ minerId }) => minerId)
    const removed = await this.#cars.open(minerIds, (custody) => this.#deals.isInCustody(custody))
    if (removed > 0) this.#log.info({ removed }, 'Removed leftovers of interrupted deals.')
    this.#expiry.start(Math.max(MIN_EXPIRY_MS, this.epochSeconds * 1000))
  }

  get wallet(): string {
    return this.#wallets.main.address
  }

  get epochSeconds(): number {
    return this.#epochs.epochSeconds
  }

  epoch(): number {
    return this.#epochs.epoch()
  }

  async providers(): Promise<Provider[]> {
    return this.#providers.all().map(({ acceptEpochs: _a, publishEpochs: _p, sealEpochs: _s, ...provider }) => ({
      ...provider,
      status: this.#faults.has(provider.minerId, 'offline') ? 'Offline' : 'Active',
    }))
  }

  async changeProvider(minerId: string, change: ProviderChange): Promise<void> {
    this.#lifetime.check()
    await this.#providers.change(this.#writer, minerId, change)
  }

  dealTotals(): DealTotals[] {
    return this.#deals.totals()
  }

  async pack(request: PackRequest): Promise<PackedCar> {
    this.#lifetime.check()
    return this.#packer.pack(request, this.#lifetime.until(request.signal))
  }

  async deal(request: DealRequest): Promise<MadeDeal> {
    this.#lifetime.check()
    const signal = this.#lifetime.until(request.signal)
    return this.#book.deal(request.reference, () => this.#maker.make(request, signal), signal)
  }

  async find(reference: string): Promise<MadeDeal | undefined> {
    this.#lifetime.check()
    return this.#book.find(reference)
  }

  async status(dealCid: string): Promise<DealStatus> {
    const record = this.#record(dealCid)
    const epoch = this.epoch()
    return { ...madeDeal(record), ...stateOf(record, epoch), epoch }
  }

  async proposal(dealCid: string): Promise<Uint8Array> {
    return this.#record(dealCid).proposal
  }

  async *retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const record = this.#record(dealCid)
    const car = this.#cars.path(deliverableFrom(record, this.epoch()))
    const { minerId } = record.terms
    const until = this.#lifetime.until(signal)
    this.#mustBeOnline(minerId)
    let given = 0
    for await (const chunk of this.#readFromCar(car, file.cid, until)) {
      if (this.#faults.has(minerId, 'slow')) await pause(until)
      this.#mustBeOnline(minerId)
      given += chunk.length
      if (given > file.size) break
      yield chunk
    }
    if (given !== file.size) {
      throw new NetworkError('NotRetrievable', `${file.cid} in deal ${dealCid} does not have ${file.size} bytes.`)
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#lifetime.end()
    await this.#book.idle()
    await this.offline.idle()
    await this.#expiry.stop()
    await this.#cars.close()
    this.#writer.close()
    this.#db.close()
  }

  #record(dealCid: string): DealRecord {
    this.#lifetime.check()
    return this.#book.record(dealCid)
  }

  #mustBeOnline(minerId: string): void {
    if (this.#faults.has(minerId, 'offline')) {
      throw new NetworkError('NotRetrievable', `Storage provider ${minerId} is offline. Try again later.`)
    }
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  await delay(SLOW_CHUNK_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
}
