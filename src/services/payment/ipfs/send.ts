import { listsEtag, unquoted } from '../../../common/etags.js'
import { type HeaderList, parseRange, reply } from '../../http/reply.js'
import type { NamedLink } from '../../network/pack/index.js'
import { type Exchange, stream } from '../http.js'
import type { Body } from './bodies.js'
import type { ContentPath } from './content-request.js'
import { pathOf } from './content-request.js'

/** Sends a body, or the part of it that the client asks for, or nothing where the client has it. */
export async function send(
  exchange: Omit<Exchange, 'path' | 'caller'>,
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
    ...(body.nameless ? [] : ['Content-Disposition', disposition]),
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

/** Changes with the form of the page, so that caches get the new one. */
export const LISTING_VERSION = '1'

const CHUNK = 16 * 1024

/**
 * A page with the entries of a directory.
 * @param directory its CID
 */
export async function* listingPage(
  { cid, names }: Pick<ContentPath, 'cid' | 'names'>,
  directory: string,
  entries: AsyncIterable<NamedLink>,
): AsyncIterable<Uint8Array> {
  let text = head({ cid, names }, directory)
  for await (const entry of entries) {
    text += row(cid, names, entry)
    if (text.length < CHUNK) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(`${text}</table>\n</body>\n</html>\n`)
}

function head({ cid, names }: Pick<ContentPath, 'cid' | 'names'>, directory: string): string {
  const crumbs = [cid, ...names].map((name, n) => `<a href="${pathOf(cid, names.slice(0, n))}">${escaped(name)}</a>`)
  const title = `Index of ${escaped(['/ipfs', cid, ...names].join('/'))}`
  const above =
    names.length === 0 ? '' : `<tr><td><a href="${pathOf(cid, names)}/..">..</a></td><td></td><td></td></tr>\n`
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>body{font-family:sans-serif;margin:2em}td{padding:.2em 1em .2em 0}td:last-child{text-align:right}.ipfs-hash{font-family:monospace}</style>
</head>
<body>
<h1>Index of</h1>
<p>/ipfs/${crumbs.join('/')}</p>
<p class="ipfs-hash">${escaped(directory)}</p>
<table>
${above}`
}

function row(cid: string, names: readonly string[], { name, cid: own, size }: NamedLink): string {
  const path = pathOf(cid, [...names, name])
  const block = `/ipfs/${own}?filename=${encodeURIComponent(name.toWellFormed())}`
  return `<tr><td><a href="${path}">${escaped(name)}</a></td><td><a class="ipfs-hash" translate="no" href="${block}">${own}</a></td><td>${size}</td></tr>\n`
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
