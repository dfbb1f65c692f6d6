import type { FileHandle } from 'node:fs/promises'
import { parseRange } from '../../../http/range.js'
import { type HeaderList, reply } from '../../../http/reply.js'
import { GatewayError } from '../../errors.js'
import type { Exchange } from '../../http/exchange.js'
import { sendFile } from '../send-file.js'

/**
 * GET|HEAD car/<secret>: the CAR of an offline deal, for the provider that stores it. Anyone who knows the secret may
 * fetch it while the deal needs it. Throws GatewayError NotFound else.
 */
export async function sendCar(exchange: Exchange, secret: string): Promise<void> {
  const { context } = exchange
  const given = await context.offlineDesk?.give(secret)
  if (given === undefined) throw new GatewayError('NotFound')
  const { task, car } = given
  const file = await context.carFiles.open(task.uuid, car.deal).catch((error) => {
    throw error.code === 'ENOENT' ? new GatewayError('NotFound', {}, error) : error
  })
  try {
    await send(exchange, file, car.carSize, `"${car.md5}"`)
  } finally {
    await file.close()
  }
}

async function send({ context, ...exchange }: Exchange, file: FileHandle, size: number, etag: string): Promise<void> {
  const { request, response } = exchange
  const ifRange = request.headers['if-range']
  const range = ifRange === undefined || ifRange === etag ? parseRange(request.headers.range, size) : undefined
  const headers: HeaderList = ['Content-Type', 'application/vnd.ipld.car', 'Accept-Ranges', 'bytes', 'ETag', etag]
  if (range === 'unsatisfiable') return reply(exchange, 416, [...headers, 'Content-Range', `bytes */${size}`])
  const { first, last } = range ?? { first: 0, last: size - 1 }
  if (range !== undefined) headers.push('Content-Range', `bytes ${first}-${last}/${size}`)
  response.writeHead(range === undefined ? 200 : 206, [...headers, 'Content-Length', last - first + 1])
  if (request.method === 'HEAD') response.end()
  else await sendFile(file.fd, first, last, response, context.limits.downloadIdleMs)
}
