import { NetworkError } from '../../../network/network.js'
import { GatewayError } from '../../errors.js'

/** Runs a query to the network. Throws GatewayError NoSuchDeal or NetworkUnavailable. */
export async function asking<T>(question: () => Promise<T>): Promise<T> {
  try {
    return await question()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    if (error.code === 'NoSuchDeal') throw new GatewayError('NoSuchDeal', {}, error)
    throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
  }
}
