import { join } from 'node:path'
import type { ServicesLog } from '../log.js'
import type { NetworkControl } from './embedded/control.js'
import { openEmbeddedNetwork } from './embedded/embedded-network.js'
import { lazyPacking } from './lazy-packing.js'
import type { Network } from './network.js'

export interface NetworkOptions {
  /** Length of an epoch, 0.001 to 86400; default 30. */
  readonly epochSeconds?: number
  /** Lets clients of the gateway let time pass and break providers: for tests and demonstrations. Default false; the embedded network alone. */
  readonly control?: boolean
  /** URL of a Kubo node's RPC: deals are made with that node, not in the embedded network. */
  readonly kubo?: string
}

export interface OpenedNetwork {
  readonly network: Network
  /** Absent: nobody may. */
  readonly control?: NetworkControl
}

/** Opens a storage network, kept in a folder of its own below one that nobody else uses: `network` for the embedded one, `kubo` for deals with a Kubo node. */
export async function openNetwork(data: string, options: NetworkOptions, log: ServicesLog): Promise<OpenedNetwork> {
  const { epochSeconds, control = false, kubo } = options
  const { pack, commit, readFromCar } = lazyPacking()
  const shared = { pack, commit, log, ...(epochSeconds !== undefined && { epochSeconds }) }
  if (kubo !== undefined) {
    if (control) throw new RangeError('A Kubo node cannot be controlled: that is for the embedded network.')
    const { openKuboNetwork } = await import('./kubo/kubo-network.js')
    return { network: await openKuboNetwork({ url: kubo, folder: join(data, 'kubo'), ...shared }) }
  }
  const folder = join(data, 'network')
  const network = await openEmbeddedNetwork({ folder, readFromCar, ...shared })
  return control ? { network, control: network.control } : { network }
}
