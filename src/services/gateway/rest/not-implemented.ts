import type { Exchange } from '../http/exchange.js'
import { replyJson } from '../http/reply.js'

/** Answers for an endpoint of the interface that this gateway does not implement. The answer names the service. */
export function notYet(what: string): (exchange: Exchange) => void {
  return (exchange) =>
    replyJson(exchange, 501, { status: 'fail', message: `${what} is not implemented by this gateway.` })
}
