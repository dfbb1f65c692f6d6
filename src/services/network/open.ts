import type { ServicesLog } from '../log.js'
import type { NetworkControl } from './embedded/control.js'
import { openEmbeddedNetwork } from './embedded/embedded-network.js'
import type { Network } from './network.js'
import { commit, createReadFromCar, pack } from './pack/index.js'

export interface NetworkOptions {
  /** Length of an epoch, 0.001 to 86400; default 30. */
  readonly epochSeconds?: number
  /** Lets clients of the gateway let time pass and break providers: for tests and demonstrations. Default false. */
  readonly control?: boolean
}

export interface OpenedNetwork {
  readonly network: Network
  /** Absent: nobody may. */
  readonly control?: NetworkControl
}

/** Opens the storage network kept in a folder that nobody else uses. */
export async function openNetwork(folder: string, options: NetworkOptions, log: ServicesLog): Promise<OpenedNetwork> {
  const { epochSeconds, control = false } = options
  const network = await openEmbeddedNetwork({
    folder,
    pack,
    commit,
    readFromCar: createReadFromCar(),
    log,
    ...(epochSeconds !== undefined && { epochSeconds }),
  })
  return control ? { network, control: network.control } : { network }
}
