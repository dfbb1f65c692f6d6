import { clientOf } from '../../http/client-address.js'
import type { Route } from '../http/route.js'

/**
 * Limits how often clients on other machines sign in, by their addresses. A program on this machine may be a server for
 * many wallets.
 */
export function rated(answer: Route['answer']): Route['answer'] {
  return async (exchange) => {
    const { local, network } = clientOf(exchange.request)
    return local ? answer(exchange) : exchange.context.signIns.run(network, async () => answer(exchange))
  }
}
