import type { IncomingMessage } from 'node:http'
import type { HttpExchange } from './body.js'
import type { HeaderList } from './errors.js'
import { PortRequest } from './port.js'

/**
 * The rest of a refused body is read for at most this long, ms, and up to this many bytes: a client that is still
 * sending would otherwise lose the answer.
 */
const MAX_LINGER_MS = 2_000
const LINGER_BYTES = 16 * 1024 * 1024

/** Up to this many unread bytes are discarded so that the connection can be reused. */
const MAX_DISCARDED = 256 * 1024

/**
 * Sends a response in one piece. Handles an unread request body so that neither side hangs or takes it for the next
 * request.
 */
export function reply(
  { request, response, body: gate }: HttpExchange,
  status: number,
  headers: HeaderList,
  body: Buffer = Buffer.alloc(0),
): void {
  const cutShort = request.destroyed && !request.complete
  if (response.headersSent || response.destroyed || cutShort) {
    response.destroy()
    return
  }
  const bodiless = request.method === 'HEAD' || status === 304
  const length: HeaderList = status === 304 ? [] : ['Content-Length', body.length]
  const all = [...headers, ...length]
  const givenUp = request.readableDidRead && !request.complete
  if (
    request instanceof PortRequest ||
    (!gate.waiting && !givenUp && (request.complete || unread(request) <= MAX_DISCARDED))
  ) {
    response.writeHead(status, all)
    response.end(bodiless ? undefined : body)
    return
  }
  response.writeHead(status, [...all, 'Connection', 'close'])
  if (bodiless || body.length === 0) response.flushHeaders()
  else response.write(body)
  linger(request, () => response.end())
}

/** Answers with a JSON document. */
export function replyJson(exchange: HttpExchange, status: number, value: unknown, headers: HeaderList = []): void {
  reply(exchange, status, [...JSON_TYPE, ...headers], Buffer.from(JSON.stringify(value)))
}

export const JSON_TYPE: HeaderList = ['Content-Type', 'application/json; charset=utf-8']

function unread(request: IncomingMessage): number {
  if (request.headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY
  return Number(request.headers['content-length'] ?? 0)
}

/** Keeps reading for a while, so that the connection is not reset before the client has read the answer. */
function linger(request: IncomingMessage, done: () => void): void {
  let bytes = 0
  const finish = (): void => {
    clearTimeout(timer)
    request.off('data', count).off('end', finish).off('close', finish)
    request.pause()
    done()
  }
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > LINGER_BYTES) finish()
  }
  const timer = setTimeout(finish, MAX_LINGER_MS)
  request.on('data', count).on('end', finish).on('close', finish)
  request.resume()
}
