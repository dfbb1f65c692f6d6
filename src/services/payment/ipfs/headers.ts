import type { HeaderList } from '../../http/reply.js'
import type { Ask } from './ask.js'

/** The answers can never change: a year. */
const CACHED = 'public, max-age=29030400, immutable'

/** Pages of other origins may read everything. */
export const CROSS_ORIGIN: HeaderList = [
  ...['Access-Control-Allow-Origin', '*', 'Access-Control-Allow-Methods', 'GET, HEAD, OPTIONS'],
  ...['Access-Control-Allow-Headers', 'Content-Type, If-None-Match, Range, User-Agent, X-Requested-With'],
  'Access-Control-Expose-Headers',
  'Content-Length, Content-Range, ETag, Ipfs-Uri, X-Chunked-Output, X-Ipfs-Path, X-Ipfs-Roots, X-Stream-Output',
]

/** The headers of every answer about a content. */
export function commonHeaders({ cid, form, byAccept }: Ask, etag: string, query: URLSearchParams): HeaderList {
  return [
    ...(byAccept ? ['Content-Location', located(cid, form, query)] : []),
    ...CROSS_ORIGIN,
    ...['Cache-Control', CACHED, 'ETag', etag],
    ...['X-Ipfs-Path', `/ipfs/${cid}`, 'X-Ipfs-Roots', cid, 'Ipfs-Uri', `ipfs://${cid}`],
    ...['X-Content-Type-Options', 'nosniff', 'Vary', 'Accept'],
  ]
}

/**
 * The URL of this very answer, for caches that do not look at Accept:
 * https://specs.ipfs.tech/http-gateways/path-gateway/#content-location-response-header
 */
function located(cid: string, form: string, query: URLSearchParams): string {
  const own = new URLSearchParams(query)
  own.set('format', form)
  return `/ipfs/${encodeURIComponent(cid)}?${own}`
}

/** Names the file for the one who saves it: in ASCII for old clients, and in UTF-8 (RFC 6266, appendix D). */
export function disposition({ form, cid, fileName, download }: Ask): string {
  const extension = form === 'raw' ? '.bin' : form === 'car' ? '.car' : ''
  const kind = form === 'file' && !download ? 'inline' : 'attachment'
  const name = (fileName ?? `${cid}${extension}`).toWellFormed()
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\]/g, '_')
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll("'", '%27')}`
}
