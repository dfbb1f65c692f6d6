import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.js'
import type { Exchange } from './exchange.js'
import { receive } from './receive.js'

/** Reads a small request body. Throws GatewayError EntityTooLarge when it has more than `most` bytes. */
export async function collect({ context, request, body }: Exchange, most: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > most) throw new GatewayError('EntityTooLarge')
  body.open()
  return receiveAtMost(request, most, context.limits.uploadIdleMs)
}

/** Reads a body of unknown length up to a bound. */
async function receiveAtMost(request: IncomingMessage, most: number, idleMs: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const tooLarge = (): Promise<void> => Promise.reject(new GatewayError('EntityTooLarge'))
  await receive(
    request,
    undefined,
    {
      write(chunk) {
        chunks.push(chunk)
        size += chunk.length
        return size <= most
      },
      ready: tooLarge,
    },
    idleMs,
  )
  return Buffer.concat(chunks)
}
