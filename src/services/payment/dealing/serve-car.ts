import { createReadStream } from 'node:fs'
import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { stream } from '../http/stream.js'

/**
 * GET and HEAD of `/cars/<task>.car`: the CAR of a task, for the storage provider that was told its name, which is
 * random. Throws PaymentError before the answer begins.
 */
export async function serveCar(exchange: Omit<Exchange, 'path' | 'caller' | 'query'>, task: string): Promise<void> {
  const { context, request, response } = exchange
  const car = context.cars.ofTask(task)
  const size = car === undefined ? undefined : await context.carFolder.size(task)
  if (size === undefined) throw new PaymentError('absent', 'there is no such CAR')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    throw new PaymentError('method', 'this path takes GET and HEAD', ['Allow', 'GET, HEAD'])
  }
  response.writeHead(200, ['Content-Type', 'application/vnd.ipld.car; version=1', 'Content-Length', size])
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  await stream(createReadStream(context.carFolder.path(task)), response, context.limits.bodyIdleMs)
}
