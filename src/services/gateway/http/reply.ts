import { type HeaderList, reply } from '../../http/reply.js'
import type { Exchange } from './exchange.js'

export function replyText(exchange: Exchange, status: number, text: string, headers: HeaderList = []): void {
  reply(exchange, status, ['Content-Type', 'text/plain; charset=utf-8', ...headers], Buffer.from(text))
}

export function replyJson(exchange: Exchange, status: number, value: unknown): void {
  reply(exchange, status, ['Content-Type', 'application/json; charset=utf-8'], Buffer.from(JSON.stringify(value)))
}

/** Serves the page of the web console, as public gateways do for unknown paths. */
export function replyConsolePage(exchange: Exchange): void {
  const page = '<!DOCTYPE html><html><head><title>Object gateway</title></head><body></body></html>\n'
  reply(exchange, 200, ['Content-Type', 'text/html; charset=utf-8'], Buffer.from(page))
}
