import type { HeaderList } from '../../http/reply.js'
import type { Ask } from './ask.js'
import { pathOf } from './path.js'

/** The answers can never change: a year. */
export const IMMUTABLE = 'public, max-age=29030400, immutable'

/** Pages of other origins may read everything. */
export const CROSS_ORIGIN: HeaderList = [
  ...['Access-Control-Allow-Origin', '*', 'Access-Control-Allow-Methods', 'GET, HEAD, OPTIONS'],
  ...['Access-Control-Allow-Headers', 'Content-Type, If-None-Match, Range, User-Agent, X-Requested-With'],
  'Access-Control-Expose-Headers',
  'Content-Length, Content-Range, ETag, Ipfs-Uri, X-Chunked-Output, X-Ipfs-Path, X-Ipfs-Roots, X-Stream-Output',
]

/** What the headers of an answer say about its content. */
export interface About {
  readonly etag: string
  readonly cache: string
  /** The root of the path, and what its names lead to. */
  readonly roots: string
}

/** The headers of every answer about a content. */
export function commonHeaders(ask: Ask, { etag, cache, roots }: About, query: URLSearchParams): HeaderList {
  const { text } = ask.path
  return [
    ...(ask.byAccept ? ['Content-Location', located(ask, query)] : []),
    ...CROSS_ORIGIN,
    ...['Cache-Control', cache, 'ETag', etag],
    ...['X-Ipfs-Path', text, 'X-Ipfs-Roots', roots, 'Ipfs-Uri', text.replace('/ipfs/', 'ipfs://')],
    ...['X-Content-Type-Options', 'nosniff', 'Vary', 'Accept'],
  ]
}

/**
 * The URL of this very answer, for caches that do not look at Accept:
 * https://specs.ipfs.tech/http-gateways/path-gateway/#content-location-response-header
 */
function located({ path: { cid, names }, form }: Ask, query: URLSearchParams): string {
  const own = new URLSearchParams(query)
  own.set('format', form)
  return `${pathOf(cid, names)}?${own}`
}

const EXTENSIONS = { file: '', raw: '.bin', car: '.car', tar: '.tar' } as const

/** Names the file for the one who saves it: in ASCII for old clients, and in UTF-8 (RFC 6266, appendix D). */
export function disposition({ form, path, fileName, download }: Ask, cid: string): string {
  const kind = form === 'file' && !download ? 'inline' : 'attachment'
  const own = form === 'file' ? (path.names.at(-1) ?? cid) : cid
  const name = (fileName ?? `${own}${EXTENSIONS[form]}`).toWellFormed()
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\]/g, '_')
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll("'", '%27')}`
}
