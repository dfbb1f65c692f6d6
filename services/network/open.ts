import { join } from 'node:path'
import type { ServicesLog } from '../log.js'
import type { StoreMetrics } from '../store/store-metrics.js'
import type { NetworkControl } from './embedded/control.js'
import { openEmbeddedNetwork } from './embedded/embedded-network.js'
import type { Network } from './network.js'
import { lazyPacking } from './packing.js'

export interface NetworkOptions {
  /** Length of an epoch in seconds, 0.001 to 86400; default 30. */
  readonly epochSeconds?: number
  /**
   * Lets clients of the gateway advance the time and switch faults of providers, for tests and demonstrations. Default
   * false; embedded network only.
   */
  readonly control?: boolean
  /** URL of a Kubo node's RPC: deals are made with that node instead of the embedded network. */
  readonly kubo?: string
  /** URL of the PostgreSQL database that holds the tables and the keys of wallets; default SQLite and files. */
  readonly database?: string
}

export interface OpenedNetwork {
  readonly network: Network
  /** Absent: no control. */
  readonly control?: NetworkControl
}

/**
 * Opens a storage network in a folder of its own below `data`, which no other instance uses: `network` for the embedded
 * one, `kubo` for deals with a Kubo node.
 */
export async function openNetwork(
  data: string,
  options: NetworkOptions,
  log: ServicesLog,
  metrics?: StoreMetrics,
): Promise<OpenedNetwork> {
  const { epochSeconds, control = false, kubo, database } = options
  const { pack, commit, readFromCar } = lazyPacking()
  const shared = { pack, commit, log, database, metrics, ...(epochSeconds !== undefined && { epochSeconds }) }
  if (kubo !== undefined) {
    if (control) throw new RangeError('A Kubo node cannot be controlled: control works with the embedded network only.')
    const { openKuboNetwork } = await import('./kubo/kubo-network.js')
    return { network: await openKuboNetwork({ url: kubo, folder: join(data, 'kubo'), ...shared }) }
  }
  const folder = join(data, 'network')
  const network = await openEmbeddedNetwork({ folder, readFromCar, ...shared })
  return control ? { network, control: network.control } : { network }
}
