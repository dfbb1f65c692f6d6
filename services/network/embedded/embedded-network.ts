import { setTimeout as delay } from 'node:timers/promises'
import {
  type Connection,
  type Database,
  DatabaseUnavailableError,
  type Schema,
  Settings,
} from '../../store/database.js'
import { requireSharedFolder } from '../../store/open.js'
import { type DealBasis, DealNetwork, type DealNetworkOptions, openDealNetwork } from '../deal-network.js'
import { type DealRecord, deliverableFrom, madeDeal } from '../deal-record.js'
import { adaptDeals, DealTable, dealSchema } from '../deal-table.js'
import { EpochTable, epochSchema } from '../epoch-clock.js'
import { Expiry } from '../expiry.js'
import {
  type DealRequest,
  type MadeDeal,
  type Network,
  NetworkError,
  type OfflineDeals,
  type PackedFile,
  type Provider,
  type ProviderChange,
  type ReadFromCar,
} from '../network.js'
import { WalletTable, walletSchema } from '../wallet.js'
import { Cars, LooseCarTable, looseCarSchema } from './cars.js'
import { catalogue, type ProviderTerms } from './catalogue.js'
import { createControl, type Fault, FaultTable, faultSchema, type NetworkControl } from './control.js'
import { DealMaker, GivenUpTable, givenUpSchema, givenUpTimeSchema, Proposer } from './deal-maker.js'
import { EmbeddedOfflineDeals } from './offline-deals.js'
import { addProviders, ProviderTable, providerSchema } from './providers.js'

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
}

/** Shortest interval at which ended deals are dropped, ms. */
const MIN_EXPIRY_MS = 1000

/** Delay of a slow provider before each chunk, ms. */
const SLOW_CHUNK_MS = 100

/** Time for which a database that does not answer is not asked for faults again, ms. */
const AWAY_MS = 5000

const settingsSchema = `
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
`

type EmbeddedTables = ReturnType<typeof embeddedSchema.tables>

export const embeddedSchema = {
  owner: 'the storage network',
  name: 'network',
  /** A released step never changes: test/services/services.test.ts has their hashes. */
  steps: [
    dealSchema + epochSchema + providerSchema + faultSchema,
    looseCarSchema,
    walletSchema,
    settingsSchema,
    givenUpSchema,
    givenUpTimeSchema,
  ],
  adapt: adaptDeals,
  tables: (connection: Connection) => ({
    deals: new DealTable(connection),
    epochs: new EpochTable(connection),
    providers: new ProviderTable(connection),
    faults: new FaultTable(connection),
    looseCars: new LooseCarTable(connection),
    givenUp: new GivenUpTable(connection),
    wallets: new WalletTable(connection),
    settings: new Settings(connection),
  }),
} satisfies Schema<unknown>

/**
 * Opens the network in a folder. All of its state survives `kill -9`; leftovers of interrupted deals are removed first.
 * Rejects when the folder holds files of something else, or an option is out of bounds. Over a PostgreSQL database,
 * several processes may use the folder, and all of them use the same one.
 */
export function openEmbeddedNetwork(options: EmbeddedNetworkOptions): Promise<EmbeddedNetwork> {
  return openDealNetwork(embeddedSchema, options, (basis) => new FolderNetwork(basis, options))
}

class FolderNetwork extends DealNetwork implements EmbeddedNetwork {
  readonly kind = 'embedded'
  readonly control: NetworkControl
  readonly offline: EmbeddedOfflineDeals
  readonly #db: Database<EmbeddedTables>
  readonly #options: EmbeddedNetworkOptions
  readonly #cars: Cars
  readonly #maker: DealMaker
  readonly #expiry: Expiry

  constructor(basis: DealBasis<EmbeddedTables>, options: EmbeddedNetworkOptions) {
    const { db, epochs, wallets } = basis
    const cars = new Cars(db, options.folder, options.log)
    super(basis, cars.staging, options)
    this.#db = db
    this.#options = options
    this.#cars = cars
    this.#expiry = new Expiry((epoch, most) => this.#drop(epoch, most), epochs, this.log)
    const { registry, lifetime, packer } = this
    const proposer = new Proposer(db, epochs, wallets)
    this.#maker = new DealMaker({ db, proposer, cars, packer })
    this.offline = new EmbeddedOfflineDeals({ db, proposer, cars, registry, epochs, lifetime, commit: options.commit })
    this.control = createControl(db, cars, epochs, this.#expiry)
  }

  async open(): Promise<void> {
    await requireSharedFolder(this.#db, this.#options.folder, embeddedSchema.owner)
    await addProviders(this.#db, this.#options.providers ?? catalogue)
    const minerIds = (await this.#db.read.providers.all()).map(({ minerId }) => minerId)
    this.logLeftovers(await this.#cars.open(minerIds))
    this.#expiry.start(Math.max(MIN_EXPIRY_MS, this.epochMs))
  }

  protected make(request: DealRequest, signal: AbortSignal): Promise<DealRecord> {
    return this.#maker.make(request, signal)
  }

  async providers(): Promise<Provider[]> {
    const { providers, faults } = this.#db.read
    const [all, those] = await Promise.all([providers.all(), faults.all()])
    const offline = new Set(those.filter(({ fault }) => fault === 'offline').map(({ minerId }) => minerId))
    return all.map(({ acceptEpochs: _a, publishEpochs: _p, sealEpochs: _s, ...provider }) => ({
      ...provider,
      status: offline.has(provider.minerId) ? 'Offline' : 'Active',
    }))
  }

  async changeProvider(minerId: string, change: ProviderChange): Promise<void> {
    this.lifetime.check()
    await this.#db.transaction(({ providers }) => providers.change(minerId, change))
  }

  override settle(reference: string): Promise<MadeDeal | undefined> {
    this.lifetime.check()
    return this.#db.transaction(async ({ deals, givenUp }) => {
      const found = await deals.find(reference)
      if (found === undefined) await givenUp.add(reference, Date.now())
      return found && madeDeal(found)
    })
  }

  async *retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const record = await this.record(dealCid)
    const car = this.#cars.path(deliverableFrom(record, this.epoch()))
    yield* this.exactly(this.#read(car, record.terms.minerId, file, this.lifetime.until(signal)), file, dealCid)
  }

  async *#read(car: string, minerId: string, file: PackedFile, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let faults = await this.#faultsOf(minerId)
    let askAt = 0
    for await (const chunk of this.#options.readFromCar(car, file.cid, signal)) {
      signal.throwIfAborted()
      if (performance.now() >= askAt) {
        // What is read already needs no database.
        faults = await this.#faultsOf(minerId).catch((error: unknown) => {
          if (!(error instanceof DatabaseUnavailableError)) throw error
          askAt = performance.now() + AWAY_MS
          return faults
        })
      }
      if (faults.has('slow')) await pause(signal)
      yield chunk
    }
  }

  /** Ends deals, and removes their CARs and those that an earlier call has left. */
  async #drop(epoch: number, most: number): Promise<number> {
    const ended = await this.#db.transaction(async ({ deals, looseCars }) => {
      const custodies = await deals.takeEnded(epoch, most)
      for (const custody of custodies) await looseCars.add(custody, 0)
      return custodies
    })
    await this.#cars.sweep()
    return ended.length
  }

  protected async end(): Promise<void> {
    this.lifetime.end()
    await this.registry.idle()
    await this.offline.idle()
    await this.#expiry.stop()
    await this.#cars.close()
  }

  /** The faults of a provider, which must be online. */
  async #faultsOf(minerId: string): Promise<ReadonlySet<Fault>> {
    const faults = await this.#db.read.faults.of(minerId)
    if (!faults.has('offline')) return faults
    throw new NetworkError('NotRetrievable', `Storage provider ${minerId} is offline. Try again later.`)
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  await delay(SLOW_CHUNK_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
}
