import type { IncomingMessage } from 'node:http'
import { type BodySink, ReceiveError, receive as receiveBody } from '../../http/receive.js'
import { GatewayError } from '../errors.js'

/**
 * As the shared `receive`, but throws GatewayError when the client ends early or sends nothing for `idleMs`.
 */
export async function receive(
  request: IncomingMessage,
  length: number | undefined,
  sink: BodySink,
  idleMs: number,
): Promise<void> {
  try {
    await receiveBody(request, length, sink, idleMs)
  } catch (error) {
    throw error instanceof ReceiveError ? new GatewayError(error.kind) : error
  }
}
