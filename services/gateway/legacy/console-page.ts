import { reply } from '../../http/reply.js'
import type { GatewayExchange } from '../exchange.js'

/** Serves the page of the web console, as public gateways do for unknown paths. */
export function replyConsolePage(exchange: GatewayExchange): void {
  const page = '<!DOCTYPE html><html><head><title>Object gateway</title></head><body></body></html>\n'
  reply(exchange, 200, ['Content-Type', 'text/html; charset=utf-8'], Buffer.from(page))
}
