import { listsEtag, unquoted } from '../../../common/etags.js'
import type { HeaderList } from '../../http/errors.js'
import { reply } from '../../http/reply.js'
import { parseRange, stream } from '../../http/send.js'
import type { PaymentExchange } from '../exchange.js'
import type { Body } from './bodies.js'

/** Sends a body, or the part of it that the client asks for, or nothing where the client has it. */
export async function send(
  exchange: PaymentExchange,
  body: Body,
  common: HeaderList,
  disposition: string,
): Promise<void> {
  const { request, response, context } = exchange
  const { headers } = request
  if (listsEtag(headers['if-none-match'] ?? '', unquoted(body.etag))) return reply(exchange, 304, common)
  const { size } = body
  const wanted = size === undefined || !rangeHolds(headers['if-range'], body.etag) ? undefined : headers.range
  const span = parseRange(firstOf(wanted), size ?? 0)
  if (span === 'unsatisfiable') {
    return reply(exchange, 416, [...common, 'Content-Range', `bytes */${size}`])
  }
  const length = span === undefined ? size : span.last - span.first + 1
  response.writeHead(span === undefined ? 200 : 206, [
    ...common,
    ...body.headers,
    ...['Content-Disposition', disposition],
    'Accept-Ranges',
    size === undefined ? 'none' : 'bytes',
    ...(length === undefined ? [] : ['Content-Length', length]),
    ...(span === undefined ? [] : ['Content-Range', `bytes ${span.first}-${span.last}/${size}`]),
  ])
  if (request.method === 'HEAD' || length === 0) {
    response.end()
    return
  }
  await stream(body.bytes(span), response, context.limits.bodyIdleMs)
}

/** The first range stands for several: gateways need not send all of them. */
function firstOf(range: string | undefined): string | undefined {
  return range?.split(',', 1)[0]
}

function rangeHolds(ifRange: string | string[] | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange === etag
}
