import { join } from 'node:path'
import { DiskReserve, withReserve } from '../../../common/disk-reserve.js'
import { makePrivateFolder } from '../../../common/files/private-file.js'
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
  type Pack,
  type PackedCar,
  type PackedFile,
  type PackRequest,
  type Provider,
} from '../network.js'
import { verifyLeaves } from '../pack/index.js'
import { DealPacker } from '../packing.js'
import { Staging } from '../staging.js'
import { EpochClock, type EpochClockOptions, epochSchema } from '../units/epoch-clock.js'
import { Expiry, Lifetime } from '../units/expiry.js'
import { Wallets } from '../wallet.js'
import { KuboClient } from './kubo-client.js'
import { KuboDeals } from './kubo-deals.js'
import { asNotRetrievable, asUnavailable } from './kubo-errors.js'
import { KuboNode } from './kubo-node.js'
import { KuboProvider, providerSchema } from './kubo-provider.js'
import { Pins, pinSchema } from './pins.js'

export interface KuboNetworkOptions extends EpochClockOptions {
  /** URL of the node's RPC, such as `http://127.0.0.1:5001`; with name and password if the node requires them. */
  readonly url: string
  /** Folder for this network alone; created when it is missing. */
  readonly folder: string
  readonly pack: Pack
  readonly commit: Commit
  readonly log: ServicesLog
  /** Idle timeout: a call fails when the node neither accepts nor sends a byte for this long, ms. Default 60 000. */
  readonly timeoutMs?: number
  /** Time that the node may take to pin what it received, ms. Default 30 minutes. */
  readonly pinMs?: number
  /** Most deals packed and sent at the same time; default 2. */
  readonly atOnce?: number
}

const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_PIN_MS = 30 * 60_000
const DEFAULT_AT_ONCE = 2

/** SQL: true for a pin without a deal; the custody of a deal is the root of its DAG. */
const UNNEEDED = 'NOT EXISTS (SELECT 1 FROM deals WHERE custody = root)'

/** Interval at which ended deals are dropped and unneeded pins removed, ms. */
const EXPIRY_MS = 60_000

/**
 * Opens a network whose only provider is a Kubo node. Deals and wallet are stored in the folder, which no other
 * instance uses. They survive `kill -9`; leftovers of interrupted deals in the folder and at the node are removed. It
 * also opens while the node is down. Rejects when the folder holds files of something else, or an option is out of
 * bounds.
 */
export async function openKuboNetwork(options: KuboNetworkOptions): Promise<Network> {
  const { url, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const client = new KuboClient({ url, timeoutMs })
  makePrivateFolder(options.folder)
  const file = join(options.folder, 'network.db')
  const db = openDatabase(file, dealSchema + epochSchema + providerSchema + pinSchema, adaptDeals)
  try {
    const reserve = new DiskReserve(file)
    const network = withReserve(reserve, () => new KuboNetwork(db, client, options, reserve))
    reserve.hold()
    await network.open()
    return network
  } catch (error) {
    db.close()
    await client.close()
    throw error
  }
}

class KuboNetwork implements Network {
  readonly kind = 'kubo'
  readonly #db: Database
  readonly #log: ServicesLog
  readonly #client: KuboClient
  readonly #node: KuboNode
  readonly #writer: Writer
  readonly #wallets: Wallets
  readonly #packer: DealPacker
  readonly #epochs: EpochClock
  readonly #provider: KuboProvider
  readonly #staging: Staging
  readonly #table: DealTable
  readonly #book: DealBook
  readonly #deals: KuboDeals
  readonly #expiry: Expiry
  readonly #lifetime = new Lifetime()
  #greeting: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(db: Database, client: KuboClient, options: KuboNetworkOptions, reserve: DiskReserve) {
    const { folder, pack, commit, log } = options
    this.#db = db
    this.#log = log
    this.#client = client
    this.#node = new KuboNode(client, options.pinMs ?? DEFAULT_PIN_MS)
    this.#writer = new Writer(db, reserve)
    this.#wallets = new Wallets(folder)
    this.#epochs = new EpochClock(db, this.#writer, options)
    this.#provider = new KuboProvider(db, this.#writer, this.#node)
    this.#staging = new Staging(join(folder, 'staging'), log)
    const deals = new DealTable(db)
    this.#table = deals
    const pins = new Pins(db, this.#writer, this.#node, UNNEEDED)
    this.#book = new DealBook(deals, log)
    this.#packer = new DealPacker({
      pack,
      commit,
      staging: this.#staging,
      slots: abortableLimit(options.atOnce ?? DEFAULT_AT_ONCE),
    })
    this.#deals = new KuboDeals({
      packer: this.#packer,
      provider: this.#provider,
      node: this.#node,
      pins,
      deals,
      writer: this.#writer,
      epochs: this.#epochs,
      wallets: this.#wallets,
      log,
    })
    const drop = () => pins.sweep(this.#lifetime.until(undefined))
    this.#expiry = new Expiry(deals, this.#writer, drop, this.#epochs, log)
  }

  async open(): Promise<void> {
    const removed = await this.#staging.open()
    if (removed > 0) this.#log.info({ removed }, 'Removed leftovers of interrupted deals.')
    this.#greeting = this.#greet()
    this.#expiry.start(EXPIRY_MS)
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
    this.#lifetime.check()
    return [await this.#provider.lastKnown()]
  }

  dealTotals(): DealTotals[] {
    return this.#table.totals()
  }

  async pack(request: PackRequest): Promise<PackedCar> {
    this.#lifetime.check()
    return this.#packer.pack(request, this.#lifetime.until(request.signal))
  }

  async deal(request: DealRequest): Promise<MadeDeal> {
    this.#lifetime.check()
    const signal = this.#lifetime.until(request.signal)
    return this.#book.deal(request.reference, () => this.#deals.make(request, signal), signal)
  }

  async find(reference: string): Promise<MadeDeal | undefined> {
    this.#lifetime.check()
    return this.#book.find(reference)
  }

  async status(dealCid: string): Promise<DealStatus> {
    const record = this.#record(dealCid)
    const epoch = this.epoch()
    const status = { ...madeDeal(record), ...stateOf(record, epoch), epoch }
    if (status.state !== 'StorageDealActive') return status
    const loss = await this.#lossOf(record.dataCid)
    return loss === undefined ? status : { ...status, ...loss }
  }

  async *retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    deliverableFrom(this.#record(dealCid), this.epoch())
    const until = this.#lifetime.until(signal)
    let given = 0
    try {
      for await (const chunk of verifyLeaves(this.#node.cat(file.cid, until), file.cid, this.#node.blocks(until))) {
        given += chunk.length
        if (given > file.size) break
        yield chunk
      }
    } catch (error) {
      throw asNotRetrievable(error)
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
    const swept = this.#expiry.stop()
    this.#lifetime.end()
    await this.#book.idle()
    await swept
    await this.#greeting
    await this.#client.close()
    this.#writer.close()
    this.#db.close()
  }

  /** Logs the identity of the node. The gateway starts without it. */
  async #greet(): Promise<void> {
    const signal = this.#lifetime.until(undefined)
    try {
      const { minerId } = await this.#provider.find(signal)
      this.#log.info({ minerId, version: await this.#node.version(signal) }, 'Deals are made with a Kubo node.')
    } catch (err) {
      if (!signal.aborted) this.#log.warn({ err }, 'The Kubo node for deals is not available.')
    }
  }

  #record(dealCid: string): DealRecord {
    this.#lifetime.check()
    return this.#book.record(dealCid)
  }

  /** Returns the state of a deal whose content the node may have lost; undefined when the node holds it. */
  async #lossOf(root: string): Promise<Pick<DealStatus, 'state' | 'message' | 'unconfirmed'> | undefined> {
    try {
      if (await this.#node.isPinned(root, this.#lifetime.until(undefined))) return undefined
      return { state: 'StorageDealError', message: 'The Kubo node no longer holds the content of the deal.' }
    } catch (error) {
      const reason = asUnavailable(error)
      if (!(reason instanceof NetworkError)) throw reason
      return { state: 'StorageDealActive', message: `Not known for certain. ${reason.message}`, unconfirmed: true }
    }
  }
}
