import { CID } from 'multiformats/cid'
import { listsEtag, unquoted } from '../../../common/etags.js'
import type { HttpExchange } from '../../http/body.js'
import type { HeaderList } from '../../http/errors.js'
import { parseRange } from '../../http/range.js'
import { reply } from '../../http/reply.js'
import { stream } from '../../http/send.js'
import { clientOf } from '../../http/server.js'
import { NetworkError } from '../../network/network.js'
import type { Content } from '../contents/content-table.js'
import type { PaymentContext } from '../context.js'
import { PaymentError } from '../errors.js'
import type { PaymentCall } from '../route.js'
import { type Body, bodyOf } from './bodies.js'
import { type ContentRequest, pathOf, readContentRequest } from './content-request.js'
import { CROSS_ORIGIN, commonHeaders, contained, disposition, type Readable } from './headers.js'

/**
 * GET and HEAD of `/ipfs/<cid>[/path]`: a content by its CID, to anyone, as the gateways of IPFS do. Each block is
 * hashed before it is sent. Throws PaymentError before the answer begins.
 */
export async function serveIpfs({ context, exchange }: PaymentCall): Promise<undefined> {
  const { request, target } = exchange
  if (request.method === 'OPTIONS') {
    reply(exchange, 204, CROSS_ORIGIN)
    return
  }
  const wanted = readContentRequest(target.path, target.parameters, request.headers)
  const packing = await import('../../network/pack/index.js')
  const root = parse(() => CID.parse(wanted.path.cid))
  requireAllowed(context, root)
  const car =
    contained(root, packing) ?? (await openContent(context, wanted, root, request.headers['cache-control'] ?? ''))
  try {
    const resolved = await known(() => packing.resolvePath(root, wanted.path.names, car.block))
    const isDirectory = resolved.node.kind === 'directory' || resolved.node.kind === 'shard'
    if (wanted.form === 'file' && isDirectory && !wanted.path.closed) return redirect(exchange, wanted)
    const body = await known(() => bodyOf({ ...resolved, wanted, car, packing, limits: context.limits }))
    const common = commonHeaders(
      wanted,
      { ...body, roots: [wanted.path.cid, ...resolved.roots.slice(1)].join(',') },
      target.parameters,
    )
    const sent = () => send(exchange, context, body, common, disposition(wanted, resolved.cid.toString()))
    await (wanted.form === 'car' ? context.carSlots.run(undefined, clientOf(request), sent) : sent())
  } finally {
    await car.close()
  }
}

/** Throws PaymentError `gone` for what the operator does not send. */
function requireAllowed({ denylist }: PaymentContext, cid: CID): void {
  if (denylist?.has(cid)) throw new PaymentError('gone', `the operator of this gateway does not send ${cid}`)
}

/** Relative links in the index.html of a directory need the slash. */
function redirect(exchange: HttpExchange, { path: { cid, names } }: ContentRequest): undefined {
  const { parameters } = exchange.target
  const query = parameters.size === 0 ? '' : `?${parameters}`
  reply(exchange, 301, [...CROSS_ORIGIN, 'Location', `${pathOf(cid, names)}/${query}`])
}

/** Opens the CAR of a content that has the block, which may come back from a provider first. Throws PaymentError. */
async function openContent(
  context: PaymentContext,
  wanted: ContentRequest,
  cid: CID,
  cacheControl: string,
): Promise<Readable> {
  const { contents } = context.db.read
  const content = await contents.ofBlock(cid.multihash.digest)
  const onlyIfCached = /\bonly-if-cached\b/.test(cacheControl)
  if (content === undefined || (onlyIfCached && content.place !== 'here')) {
    throw new PaymentError(onlyIfCached ? 'unmet' : 'absent', `this gateway does not have ${wanted.path.cid}`)
  }
  let here: Content | undefined = content
  if (content.place === 'provider') {
    await context.restoring.restore(content)
    here = await contents.find(content.cid)
  }
  // A denied content may be anywhere below this one, as a part of a file, too: the answer breaks off there.
  return known(() => context.contents.read(here ?? content, (block) => requireAllowed(context, block)))
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

/** Sends a body, or the part of it that the client asks for, or nothing where the client has it. */
async function send(
  exchange: HttpExchange,
  context: PaymentContext,
  body: Body,
  common: HeaderList,
  disposition: string,
): Promise<void> {
  const { request, response } = exchange
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
  const blocks = context.blockRate.paced(clientOf(request).network, body.bytes(span))
  await stream(blocks, response, context.limits.bodyIdleMs)
}

/** The first range stands for several: gateways need not send all of them. */
function firstOf(range: string | undefined): string | undefined {
  return range?.split(',', 1)[0]
}

function rangeHolds(ifRange: string | string[] | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange === etag
}

/**
 * Where a content can be read: at the gateway that the options name, else that of the Kubo node which has all contents,
 * else at the service itself.
 */
export async function ipfsUrl({ ipfsGateway, kubo, publicUrl }: PaymentContext, cid: string): Promise<string> {
  const base = ipfsGateway ?? (await kubo?.gateway()) ?? publicUrl()
  return `${base}/ipfs/${cid}`
}
