import { join } from 'node:path'
import { type Database, openDatabase, Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import { makePrivateFolder } from '../../private-file.js'
import { DealBook } from '../deal-book.js'
import { type DealRecord, deliverableFrom, madeDeal, stateOf } from '../deal-record.js'
import { DealTable, dealSchema } from '../deal-table.js'
import { EpochClock, type EpochClockOptions, epochSchema } from '../epoch-clock.js'
import { Expiry } from '../expiry.js'
import { Lifetime } from '../lifetime.js'
import {
  type DealRequest,
  type DealStatus,
  type MadeDeal,
  type Network,
  NetworkError,
  type PackedFile,
  type Provider,
} from '../network.js'
import { verifyLeaves } from '../pack/index.js'
import { DealPacker } from '../pack-deal.js'
import type { Commit, Pack } from '../packing.js'
import { Staging } from '../staging.js'
import { Turns } from '../turns.js'
import { Wallet } from '../wallet.js'
import { KuboClient } from './kubo-client.js'
import { KuboDeals } from './kubo-deals.js'
import { asNotRetrievable, asUnavailable } from './kubo-errors.js'
import { KuboNode } from './kubo-node.js'
import { KuboProvider, providerSchema } from './kubo-provider.js'
import { Pins, pinSchema } from './pins.js'

export interface KuboNetworkOptions extends EpochClockOptions {
  /** Of the node's RPC, such as `http://127.0.0.1:5001`; with name and password when it asks for them. */
  readonly url: string
  /** For this network alone; made when it is not there. */
  readonly folder: string
  readonly pack: Pack
  readonly commit: Commit
  readonly log: ServicesLog
  /** A node that neither takes nor sends a byte for this long is given up, ms. Default 60 000. */
  readonly timeoutMs?: number
  /** How long the node may take to pin what it was sent, ms. Default 30 minutes. */
  readonly pinMs?: number
  /** Deals that are packed and sent at the same time; the others wait. Default 2. */
  readonly atOnce?: number
}

const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_PIN_MS = 30 * 60_000
const DEFAULT_AT_ONCE = 2

/** How often deals that have ended, and pins that nobody needs, are looked for, ms. */
const EXPIRY_MS = 60_000

/**
 * Opens a network whose one provider is a Kubo node. Deals and wallet are kept in the folder, which nobody else uses; they survive `kill -9`, and what deals cut short
 * have left there and at the node is removed. Opens also while the node is down. Rejects when the folder's content is not its own, or an option is out of its bounds.
 */
export async function openKuboNetwork(options: KuboNetworkOptions): Promise<Network> {
  const { url, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const client = new KuboClient({ url, timeoutMs })
  makePrivateFolder(options.folder)
  const db = openDatabase(join(options.folder, 'network.db'), dealSchema + epochSchema + providerSchema + pinSchema)
  try {
    const network = new KuboNetwork(db, client, options)
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
  readonly #wallet: Wallet
  readonly #epochs: EpochClock
  readonly #provider: KuboProvider
  readonly #staging: Staging
  readonly #book: DealBook
  readonly #deals: KuboDeals
  readonly #expiry: Expiry
  readonly #lifetime = new Lifetime()
  #greeting: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(db: Database, client: KuboClient, options: KuboNetworkOptions) {
    const { folder, pack, commit, log } = options
    this.#db = db
    this.#log = log
    this.#client = client
    this.#node = new KuboNode(client, options.pinMs ?? DEFAULT_PIN_MS)
    this.#writer = new Writer(db)
    this.#wallet = Wallet.open(join(folder, 'wallet.json'))
    this.#epochs = new EpochClock(db, this.#writer, options)
    this.#provider = new KuboProvider(db, this.#writer, this.#node)
    this.#staging = new Staging(join(folder, 'staging'), log)
    const deals = new DealTable(db)
    const pins = new Pins(db, this.#writer, this.#node)
    this.#book = new DealBook(deals, log)
    this.#deals = new KuboDeals({
      packer: new DealPacker({
        pack,
        commit,
        staging: this.#staging,
        turns: new Turns(options.atOnce ?? DEFAULT_AT_ONCE),
      }),
      provider: this.#provider,
      node: this.#node,
      pins,
      deals,
      writer: this.#writer,
      epochs: this.#epochs,
      wallet: this.#wallet,
      log,
    })
    const drop = () => pins.sweep(this.#lifetime.until(undefined))
    this.#expiry = new Expiry(deals, this.#writer, drop, this.#epochs, log)
  }

  async open(): Promise<void> {
    const removed = await this.#staging.open()
    if (removed > 0) this.#log.info({ removed }, 'Removed what deals cut short had left.')
    this.#greeting = this.#greet()
    this.#expiry.start(EXPIRY_MS)
  }

  get wallet(): string {
    return this.#wallet.address
  }

  get epochSeconds(): number {
    return this.#epochs.epochSeconds
  }

  epoch(): number {
    return this.#epochs.epoch()
  }

  async providers(): Promise<Provider[]> {
    this.#lifetime.check()
    return [await this.#provider.describe()]
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

  /** Says in the log what the node is. A gateway starts without it. */
  async #greet(): Promise<void> {
    const signal = this.#lifetime.until(undefined)
    try {
      const { minerId } = await this.#provider.find(signal)
      this.#log.info({ minerId, version: await this.#node.version(signal) }, 'Deals are made with a Kubo node.')
    } catch (err) {
      if (!signal.aborted) this.#log.warn({ err }, 'The Kubo node that deals are to be made with does not serve.')
    }
  }

  #record(dealCid: string): DealRecord {
    this.#lifetime.check()
    return this.#book.record(dealCid)
  }

  /** What became of the content of a deal that should be there. */
  async #lossOf(root: string): Promise<Pick<DealStatus, 'state' | 'message' | 'unconfirmed'> | undefined> {
    try {
      if (await this.#node.isPinned(root, this.#lifetime.until(undefined))) return undefined
      return { state: 'StorageDealError', message: 'The Kubo node does not keep the content of the deal any more.' }
    } catch (error) {
      const reason = asUnavailable(error)
      if (!(reason instanceof NetworkError)) throw reason
      return { state: 'StorageDealActive', message: `Not known for certain. ${reason.message}`, unconfirmed: true }
    }
  }
}
