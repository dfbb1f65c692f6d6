import { CID } from 'multiformats/cid'
import { listsEtag, unquoted } from '../../../common/etags.js'
import { parseRange, type Span } from '../../http/range.js'
import { type HeaderList, reply } from '../../http/reply.js'
import { NetworkError } from '../../network/network.js'
import type { OpenCar } from '../../network/pack/index.js'
import type { PaymentContext } from '../context.js'
import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { stream } from '../http/stream.js'
import { type Ask, readAsk } from './ask.js'
import { spanOf } from './car-terms.js'
import { CROSS_ORIGIN, commonHeaders, disposition } from './headers.js'
import { contained } from './identity.js'

/** What is sent: its bytes, as many as are asked for. */
interface Body {
  /** Undefined when it is known at the end alone. */
  readonly size: number | undefined
  readonly etag: string
  readonly headers: HeaderList
  bytes(span: Span | undefined): AsyncIterable<Uint8Array>
}

/**
 * GET and HEAD of `/ipfs/<cid>`: a content by its CID, to anyone, as the gateways of IPFS do. Each block is hashed before
 * it is sent. Throws PaymentError before the answer begins.
 */
export async function serveIpfs(exchange: Omit<Exchange, 'path' | 'caller'>, path: string): Promise<void> {
  const { context, request } = exchange
  if (request.method === 'OPTIONS') return reply(exchange, 204, CROSS_ORIGIN)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    throw new PaymentError('method', 'this path takes GET and HEAD', ['Allow', 'GET, HEAD, OPTIONS'])
  }
  const ask = readAsk(path, exchange.query, request.headers)
  const { carOf } = await import('../../network/pack/index.js')
  const cid = parse(() => CID.parse(ask.cid))
  const car = contained(cid) ?? (await openContent(context, ask, cid, request.headers['cache-control'] ?? ''))
  try {
    const body = await known(() => bodyOf(ask, car))
    await send(exchange, ask, body)
  } finally {
    await car.close()
  }

  async function bodyOf(ask: Ask, { block, fileSize, range }: OpenCar): Promise<Body> {
    switch (ask.form) {
      case 'raw': {
        const bytes = await block(cid)
        return {
          size: bytes.length,
          etag: `"${ask.cid}.raw"`,
          headers: ['Content-Type', 'application/vnd.ipld.raw'],
          bytes: (span) => one(span === undefined ? bytes : bytes.subarray(span.first, span.last + 1)),
        }
      }
      case 'car': {
        const { scope, duplicates, bytes } = ask.car
        const span = bytes === undefined ? undefined : spanOf(ask.car, await fileSize(cid))
        const shape = [scope, duplicates ? 'y' : 'n', bytes?.from ?? '', bytes?.to ?? ''].join('.')
        return {
          size: undefined,
          etag: `W/"${ask.cid}.car.${shape}"`,
          headers: ['Content-Type', `application/vnd.ipld.car; version=1; order=dfs; dups=${duplicates ? 'y' : 'n'}`],
          bytes: () => carOf(cid, block, { rootAlone: scope === 'block', duplicates, span }),
        }
      }
      case 'file': {
        const size = await fileSize(cid)
        return {
          size,
          etag: `"${ask.cid}"`,
          headers: ['Content-Type', 'application/octet-stream'],
          bytes: (span) => range(cid, span?.first ?? 0, span?.last ?? size - 1),
        }
      }
    }
  }
}

/** Opens the CAR of a content that has the block, which may come back from a provider first. Throws PaymentError. */
async function openContent(context: PaymentContext, ask: Ask, cid: CID, cacheControl: string): Promise<OpenCar> {
  const content = context.contentTable.ofBlock(cid.multihash.digest)
  const onlyIfCached = /\bonly-if-cached\b/.test(cacheControl)
  if (content === undefined || (onlyIfCached && content.place !== 'here')) {
    throw new PaymentError(onlyIfCached ? 'unmet' : 'absent', `this gateway does not have ${ask.cid}`)
  }
  if (content.place === 'provider') await context.restoring.restore(content)
  return known(() => context.contents.read(content))
}

async function send(exchange: Omit<Exchange, 'path' | 'caller'>, ask: Ask, body: Body): Promise<void> {
  const { request, response, context } = exchange
  const { headers } = request
  const common = commonHeaders(ask, body.etag, exchange.query)
  if (listsEtag(headers['if-none-match'] ?? '', unquoted(body.etag))) return reply(exchange, 304, common)
  const { size } = body
  const wanted = size === undefined || !rangeHolds(headers['if-range'], body.etag) ? undefined : headers.range
  const span = parseRange(wanted, size ?? 0)
  if (span === 'unsatisfiable') {
    return reply(exchange, 416, [...common, 'Content-Range', `bytes */${size}`])
  }
  const length = span === undefined ? size : span.last - span.first + 1
  response.writeHead(span === undefined ? 200 : 206, [
    ...common,
    ...body.headers,
    'Content-Disposition',
    disposition(ask),
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

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}

function rangeHolds(ifRange: string | string[] | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange === etag
}

function parse<T>(read: () => T): T {
  try {
    return read()
  } catch {
    throw new PaymentError('value', 'the path has no valid CID')
  }
}

/** A damaged or foreign block is as good as none. */
async function known<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw error instanceof NetworkError ? new PaymentError('absent', error.message) : error
  }
}
