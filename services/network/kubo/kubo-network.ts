import { join } from 'node:path'
import type { Connection, Schema } from '../../store/database.js'
import { type DealBasis, DealNetwork, type DealNetworkOptions, openDealNetwork } from '../deal-network.js'
import { type DealRecord, deliverableFrom } from '../deal-record.js'
import { adaptDeals, DealTable, dealSchema } from '../deal-table.js'
import { EpochTable, epochSchema } from '../epoch-clock.js'
import { Expiry } from '../expiry.js'
import {
  type DealRequest,
  type DealStatus,
  type Network,
  NetworkError,
  type PackedFile,
  type Provider,
} from '../network.js'
import { verifyLeaves } from '../pack/index.js'
import { Staging } from '../staging.js'
import { WalletTable, walletSchema } from '../wallet.js'
import { KuboClient } from './kubo-client.js'
import { KuboDeals } from './kubo-deals.js'
import { asNotRetrievable, asUnavailable } from './kubo-errors.js'
import { KuboNode } from './kubo-node.js'
import { KuboProvider, NodeTable, providerSchema } from './kubo-provider.js'
import { Pins, PinTable, pinSchema } from './pins.js'

interface KuboNetworkOptions extends DealNetworkOptions {
  /** URL of the node's RPC, such as `http://127.0.0.1:5001`; with name and password if the node requires them. */
  readonly url: string
  /** Idle timeout: a call fails when the node neither accepts nor sends a byte for this long, ms. Default 60 000. */
  readonly timeoutMs?: number
  /** Time that the node may take to pin what it received, ms. Default 30 minutes. */
  readonly pinMs?: number
}

const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_PIN_MS = 30 * 60_000

/** SQL: true for a pin without a deal; the custody of a deal is the root of its DAG. */
const UNNEEDED = 'NOT EXISTS (SELECT 1 FROM deals WHERE custody = root)'

type KuboTables = ReturnType<typeof kuboSchema.tables>

export const kuboSchema = {
  owner: 'the deals with a Kubo node',
  name: 'kubo',
  /** A released step never changes: test/services/services.test.ts has their hashes. */
  steps: [dealSchema + epochSchema + providerSchema + pinSchema, walletSchema],
  adapt: adaptDeals,
  tables: (connection: Connection) => ({
    deals: new DealTable(connection),
    epochs: new EpochTable(connection),
    node: new NodeTable(connection),
    pins: new PinTable(connection, UNNEEDED),
    wallets: new WalletTable(connection),
  }),
  exclusive: true,
} satisfies Schema<unknown>

/** Interval at which ended deals are dropped and unneeded pins removed, ms. */
const EXPIRY_MS = 60_000

/**
 * Opens a network whose only provider is a Kubo node. Deals and wallet survive `kill -9`; leftovers of interrupted
 * deals in the folder and at the node are removed. It also opens while the node is down. Rejects when the folder holds
 * files of something else, or an option is out of bounds.
 */
export async function openKuboNetwork(options: KuboNetworkOptions): Promise<Network> {
  const { url, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const client = new KuboClient({ url, timeoutMs })
  try {
    return await openDealNetwork(kuboSchema, options, (basis) => new KuboNetwork(basis, client, options))
  } catch (error) {
    await client.close()
    throw error
  }
}

class KuboNetwork extends DealNetwork implements Network {
  readonly kind = 'kubo'
  readonly #client: KuboClient
  readonly #node: KuboNode
  readonly #provider: KuboProvider
  readonly #staging: Staging
  readonly #maker: KuboDeals
  readonly #expiry: Expiry
  #greeting: Promise<void> | undefined

  constructor(basis: DealBasis<KuboTables>, client: KuboClient, options: KuboNetworkOptions) {
    const { db, epochs, wallets } = basis
    const staging = new Staging(join(options.folder, 'staging'), options.log)
    super(basis, staging, options)
    const node = new KuboNode(client, options.pinMs ?? DEFAULT_PIN_MS)
    const provider = new KuboProvider(db, node)
    const pins = new Pins(db, node, !kuboSchema.exclusive)
    const { packer, log } = this
    this.#client = client
    this.#node = node
    this.#provider = provider
    this.#staging = staging
    this.#maker = new KuboDeals({ packer, provider, node, pins, db, epochs, wallets, log })
    const drop = async (epoch: number, most: number): Promise<number> => {
      const ended = await db.transaction(({ deals }) => deals.takeEnded(epoch, most))
      await pins.sweep(this.lifetime.until(undefined))
      return ended.length
    }
    this.#expiry = new Expiry(drop, epochs, log)
  }

  async open(): Promise<void> {
    this.logLeftovers(await this.#staging.open())
    this.#greeting = this.#greet()
    this.#expiry.start(EXPIRY_MS)
  }

  protected make(request: DealRequest, signal: AbortSignal): Promise<DealRecord> {
    return this.#maker.make(request, signal)
  }

  async providers(): Promise<Provider[]> {
    this.lifetime.check()
    return [await this.#provider.lastKnown()]
  }

  override async status(dealCid: string): Promise<DealStatus> {
    const status = await super.status(dealCid)
    if (status.state !== 'StorageDealActive') return status
    return { ...status, ...(await this.#lossOf(status.dataCid)) }
  }

  async *retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    deliverableFrom(await this.record(dealCid), this.epoch())
    const until = this.lifetime.until(signal)
    const chunks = verifyLeaves(this.#node.cat(file.cid, until), file.cid, this.#node.blocks(until))
    try {
      yield* this.exactly(chunks, file, dealCid)
    } catch (error) {
      throw asNotRetrievable(error)
    }
  }

  protected async end(): Promise<void> {
    const swept = this.#expiry.stop()
    this.lifetime.end()
    await this.registry.idle()
    await swept
    await this.#greeting
    await this.#client.close()
  }

  /** Logs the identity of the node. The gateway starts without it. */
  async #greet(): Promise<void> {
    const signal = this.lifetime.until(undefined)
    try {
      const { minerId } = await this.#provider.find(signal)
      this.log.info({ minerId, version: await this.#node.version(signal) }, 'Deals are made with a Kubo node.')
    } catch (err) {
      if (!signal.aborted) this.log.warn({ err }, 'The Kubo node for deals is not available.')
    }
  }

  /** Returns the state of a deal whose content the node may have lost; undefined when the node holds it. */
  async #lossOf(root: string): Promise<Pick<DealStatus, 'state' | 'message' | 'unconfirmed'> | undefined> {
    try {
      if (await this.#node.isPinned(root, this.lifetime.until(undefined))) return undefined
      return { state: 'StorageDealError', message: 'The Kubo node no longer holds the content of the deal.' }
    } catch (error) {
      const reason = asUnavailable(error)
      if (!(reason instanceof NetworkError)) throw reason
      return { state: 'StorageDealActive', message: `Not known for certain. ${reason.message}`, unconfirmed: true }
    }
  }
}
