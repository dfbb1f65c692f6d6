import { setTimeout as delay } from 'node:timers/promises'
import { Clock } from '../../clock.js'
import type { Database, Writer } from '../../database.js'
import { DealNetwork, type DealNetworkOptions, openDealNetwork } from '../deal-network.js'
import { type DealRecord, deliverableFrom } from '../deal-record.js'
import { Expiry } from '../expiry.js'
import {
  type DealRequest,
  type Network,
  NetworkError,
  type OfflineDeals,
  type PackedFile,
  type Provider,
  type ProviderChange,
  type ReadFromCar,
} from '../network.js'
import { Cars } from './cars.js'
import { catalogue, type ProviderTerms } from './catalogue.js'
import { createControl, Faults, faultSchema, type NetworkControl } from './control.js'
import { DealMaker, Proposer } from './deal-maker.js'
import { EmbeddedOfflineDeals } from './offline-deals.js'
import { Providers, providerSchema } from './providers.js'

export interface EmbeddedNetworkOptions extends DealNetworkOptions {
  readonly readFromCar: ReadFromCar
  /** Providers to add to those that the network already has; default a list of eight. */
  readonly providers?: readonly ProviderTerms[]
}

/**
 * A network on the local disk. Its providers are folders and rules; its content ids, pieces, proposals and signatures
 * are real.
 */
export interface EmbeddedNetwork extends Network {
  readonly kind: 'embedded'
  readonly control: NetworkControl
  readonly offline: OfflineDeals
  /** The signed proposal of a deal, the DAG-CBOR block with this CID. Rejects with NetworkError NoSuchDeal. */
  proposal(dealCid: string): Promise<Uint8Array>
}

/** Shortest interval at which ended deals are dropped, ms. */
const MIN_EXPIRY_MS = 1000

/** Delay of a slow provider before each chunk, ms. */
const SLOW_CHUNK_MS = 100

/**
 * Opens the network in a folder that no other instance uses. All of its state survives `kill -9`; leftovers of
 * interrupted deals are removed first. Rejects when the folder holds files of something else, or an option is out of
 * bounds.
 */
export function openEmbeddedNetwork(options: EmbeddedNetworkOptions): Promise<EmbeddedNetwork> {
  return openDealNetwork(
    options.folder,
    providerSchema + faultSchema,
    (db, writer) => new FolderNetwork(db, writer, options),
  )
}

class FolderNetwork extends DealNetwork implements EmbeddedNetwork {
  readonly kind = 'embedded'
  readonly control: NetworkControl
  readonly offline: EmbeddedOfflineDeals
  readonly #readFromCar: ReadFromCar
  readonly #providers: Providers
  readonly #faults: Faults
  readonly #cars: Cars
  readonly #maker: DealMaker
  readonly #expiry: Expiry

  constructor(db: Database, writer: Writer, options: EmbeddedNetworkOptions) {
    const cars = new Cars(options.folder, options.log)
    super(db, writer, cars.staging, options)
    this.#readFromCar = options.readFromCar
    this.#cars = cars
    this.#providers = new Providers(db, options.providers ?? catalogue)
    this.#faults = new Faults(db, writer)
    const drop = (custodies: readonly string[]) => custodies.forEach((custody) => void cars.discard(custody))
    this.#expiry = new Expiry(this.deals, writer, drop, this.epochs, this.log)
    const { epochs, deals, wallets, book, lifetime, packer } = this
    const providers = this.#providers
    const faults = this.#faults
    const proposer = new Proposer({ providers, faults, epochs, clock: new Clock(), wallets })
    const shared = { proposer, faults, cars, deals, writer }
    this.#maker = new DealMaker({ ...shared, packer })
    this.offline = new EmbeddedOfflineDeals({ ...shared, book, epochs, lifetime, commit: options.commit })
    this.control = createControl(providers, faults, cars, epochs, this.#expiry)
  }

  async open(): Promise<void> {
    const minerIds = this.#providers.all().map(({ minerId }) => minerId)
    this.logLeftovers(await this.#cars.open(minerIds, (custody) => this.deals.isInCustody(custody)))
    this.#expiry.start(Math.max(MIN_EXPIRY_MS, this.epochMs))
  }

  protected make(request: DealRequest, signal: AbortSignal): Promise<DealRecord> {
    return this.#maker.make(request, signal)
  }

  async providers(): Promise<Provider[]> {
    return this.#providers.all().map(({ acceptEpochs: _a, publishEpochs: _p, sealEpochs: _s, ...provider }) => ({
      ...provider,
      status: this.#faults.has(provider.minerId, 'offline') ? 'Offline' : 'Active',
    }))
  }

  async changeProvider(minerId: string, change: ProviderChange): Promise<void> {
    this.lifetime.check()
    await this.#providers.change(this.writer, minerId, change)
  }

  async proposal(dealCid: string): Promise<Uint8Array> {
    return this.record(dealCid).proposal
  }

  async *retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const record = this.record(dealCid)
    const car = this.#cars.path(deliverableFrom(record, this.epoch()))
    yield* this.exactly(this.#read(car, record.terms.minerId, file, this.lifetime.until(signal)), file, dealCid)
  }

  async *#read(car: string, minerId: string, file: PackedFile, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    this.#mustBeOnline(minerId)
    for await (const chunk of this.#readFromCar(car, file.cid, signal)) {
      if (this.#faults.has(minerId, 'slow')) await pause(signal)
      this.#mustBeOnline(minerId)
      yield chunk
    }
  }

  protected async end(): Promise<void> {
    this.lifetime.end()
    await this.book.idle()
    await this.offline.idle()
    await this.#expiry.stop()
    await this.#cars.close()
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
