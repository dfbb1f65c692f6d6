import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { Exchange } from './exchange.js'
import type { HeaderList } from './reply.js'
import { asGatewayError } from './reply-error.js'

/**
 * Answers 200 with a body that is made while it is sent. What fails before the first part is thrown; later it cuts the connection: half a body must not pass for
 * the whole.
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

/** Resolves when more may be written, or nothing can be any more. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
