import type { CID } from 'multiformats/cid'
import type { HeaderList } from '../../http/errors.js'
import type { CarSource, OpenCar } from '../../network/pack/index.js'
import { type CarTerms, type ContentRequest, pathOf } from './content-request.js'

/** The answers can never change: a year. */
export const IMMUTABLE = 'public, max-age=29030400, immutable'

/** Pages of other origins may read everything. */
export const CROSS_ORIGIN: HeaderList = [
  ...['Access-Control-Allow-Origin', '*', 'Access-Control-Allow-Methods', 'GET, HEAD, OPTIONS'],
  ...['Access-Control-Allow-Headers', 'Content-Type, If-None-Match, Range, User-Agent, X-Requested-With'],
  'Access-Control-Expose-Headers',
  'Content-Length, Content-Range, ETag, Ipfs-Uri, X-Chunked-Output, X-Ipfs-Path, X-Ipfs-Roots, X-Stream-Output',
]

interface About {
  readonly etag: string
  readonly cache: string
  /** The root of the path, and what its names lead to. */
  readonly roots: string
}

export function commonHeaders(
  wanted: ContentRequest,
  { etag, cache, roots }: About,
  query: URLSearchParams,
): HeaderList {
  const { text } = wanted.path
  return [
    ...(wanted.byAccept ? ['Content-Location', located(wanted, query)] : []),
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
function located({ path: { cid, names }, form }: ContentRequest, query: URLSearchParams): string {
  const own = new URLSearchParams(query)
  own.set('format', form)
  return `${pathOf(cid, names)}?${own}`
}

const EXTENSIONS = { file: '', raw: '.bin', car: '.car' } as const

/** Names the file for the one who saves it: in ASCII for old clients, and in UTF-8 (RFC 6266, appendix D). */
export function disposition({ form, path, fileName, download }: ContentRequest, cid: string): string {
  const kind = form === 'file' && !download ? 'inline' : 'attachment'
  const own = form === 'file' ? (path.names.at(-1) ?? cid) : cid
  const name = (fileName ?? `${own}${EXTENSIONS[form]}`).toWellFormed()
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\]/g, '_')
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll("'", '%27')}`
}

/** The multihash of a CID that contains its block, and the codec of raw bytes. */
const IDENTITY = 0x00
const RAW = 0x55

/** A content that can be read. */
export type Readable = Pick<OpenCar, 'block' | 'fileSize' | 'range' | 'close'> & CarSource

/** The content that a CID contains itself: a client may ask any gateway for it. Undefined for other CIDs. */
export function contained(
  cid: CID,
  { carOf }: Pick<typeof import('../../network/pack/index.js'), 'carOf'>,
): Readable | undefined {
  if (cid.multihash.code !== IDENTITY || cid.code !== RAW) return undefined
  const bytes = cid.multihash.digest
  const block = async () => bytes
  return {
    block,
    export: (root, scope) => carOf(root, block, scope),
    fileSize: async () => bytes.length,
    async *range(_, first, last) {
      if (last >= first) yield bytes.subarray(first, last + 1)
    },
    close: async () => {},
  }
}

/**
 * The bytes of a file of that size; undefined for all. A span without bytes is beyond the file.
 */
export function spanOf(
  { bytes }: CarTerms,
  size: number,
): { readonly first: number; readonly last: number } | undefined {
  if (bytes === undefined) return undefined
  const position = (at: number): number => (at < 0 ? Math.max(0, size + at) : at)
  const last = bytes.to === undefined ? size - 1 : bytes.to < 0 ? size + bytes.to : bytes.to
  const first = position(bytes.from)
  return first <= last ? { first, last } : { first: size, last: -1 }
}
