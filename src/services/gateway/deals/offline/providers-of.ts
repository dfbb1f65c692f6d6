import { type Network, NetworkError, type Provider } from '../../../network/network.js'
import { GatewayError } from '../../errors.js'

/** The storage providers of a network. Throws GatewayError NetworkUnavailable. */
export async function providersOf(network: Network): Promise<readonly Provider[]> {
  try {
    return await network.providers()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
  }
}
