import type { Exchange } from '../http/exchange.js'
import { replyJson } from '../http/reply.js'

/** An endpoint of the interface that this gateway has no service behind. Says so by name. */
export function notYet(what: string): (exchange: Exchange) => void {
  return (exchange) =>
    replyJson(exchange, 501, { status: 'fail', message: `${what} is not implemented by this gateway.` })
}
