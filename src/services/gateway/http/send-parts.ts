import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { HeaderList } from '../../http/reply.js'
import type { Exchange } from './exchange.js'
import { asGatewayError } from './reply-error.js'

/**
 * Answers 200 with a body that is generated while it is sent. An error before the first part is thrown. A later one
 * destroys the connection, so that a partial body does not look complete.
 */
export async function sendParts(exchange: Exchange, headers: HeaderList, body: AsyncIterable<string>): Promise<void> {
  const { response } = exchange
  const parts = body[Symbol.asyncIterator]()
  let part = await parts.next()
  response.writeHead(200, headers)
  try {
    while (!part.done) {
      if (response.destroyed) return
      if (response.write(part.value)) await setImmediate()
      else await drained(response)
      part = await parts.next()
    }
    response.end()
  } catch (error) {
    asGatewayError(error, exchange)
    response.destroy()
  }
}

/** Resolves when the response accepts more data, or is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
