import type { CID } from 'multiformats/cid'
import type { HeaderList, Span } from '../../http/reply.js'
import type { Resolved } from '../../network/pack/index.js'
import { PaymentError } from '../errors.js'
import type { PaymentLimits } from '../limits.js'
import type { Ask } from './content-request.js'
import { contentType, SNIFFED_BYTES } from './content-type.js'
import { IMMUTABLE, type Readable, spanOf } from './headers.js'
import { LISTING_VERSION, listingPage } from './send.js'
import { exactly, tarOf } from './tar.js'

type Packing = typeof import('../../network/pack/index.js')

/** What is sent: its bytes, as many as are asked for. */
export interface Body {
  /** Undefined when it is known at the end alone. */
  readonly size: number | undefined
  readonly etag: string
  /** How long it may be cached. */
  readonly cache: string
  readonly headers: HeaderList
  /** A page that has no name to be saved by. */
  readonly nameless?: boolean
  bytes(span: Span | undefined): AsyncIterable<Uint8Array>
}

/** What a body is made from. */
export interface Found extends Resolved {
  readonly ask: Ask
  readonly car: Readable
  readonly packing: Packing
  readonly limits: PaymentLimits
}

const LISTING_CACHED = 'public, max-age=604800, stale-while-revalidate=2678400'

/** Pages of contents have an origin of their own: they cannot act as this one, nor as each other. */
const SANDBOX: HeaderList = [
  'Content-Security-Policy',
  'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads',
]

/** Rejects with PaymentError `unacceptable` when the content has no such form. */
export async function bodyOf(found: Found): Promise<Body> {
  const { ask, cid, node, car } = found
  switch (ask.form) {
    case 'raw':
      return rawBody(cid, await car.block(cid))
    case 'car':
      return carBody(found)
    case 'tar':
      return tarBody(found)
    case 'file':
      if (node.kind === 'file') return fileBody(found, cid, ask.fileName ?? ask.path.names.at(-1) ?? '')
      if (ask.kind !== undefined) throw notOfKind(ask.kind)
      return node.kind === 'symlink' ? symlinkBody(cid, node.target) : directoryBody(found)
  }
}

function rawBody(cid: CID, bytes: Uint8Array): Body {
  return {
    size: bytes.length,
    etag: `"${cid}.raw"`,
    cache: IMMUTABLE,
    headers: ['Content-Type', 'application/vnd.ipld.raw'],
    bytes: (span) => one(span === undefined ? bytes : bytes.subarray(span.first, span.last + 1)),
  }
}

async function carBody({ ask, cid, node, car, above, packing, limits }: Found): Promise<Body> {
  const { scope, duplicates, bytes } = ask.car
  const isPart = bytes !== undefined && node.kind === 'file'
  const span = isPart ? spanOf(ask.car, await car.fileSize(cid)) : undefined
  const shape = [
    scope,
    duplicates ? 'y' : 'n',
    bytes?.from ?? '',
    bytes?.to ?? '',
    ...ask.path.names.map(encodeURIComponent),
  ]
  return {
    size: undefined,
    etag: `W/"${cid}.car.${shape.join('.')}"`,
    cache: IMMUTABLE,
    headers: ['Content-Type', `application/vnd.ipld.car; version=1; order=dfs; dups=${duplicates ? 'y' : 'n'}`],
    bytes: () => {
      const blocks = packing.carOf(cid, car.block, { scope, duplicates, span, above })
      // Without duplicates, it has no more than the content.
      return duplicates ? new ArchiveRoom(limits).passingEntries(blocks) : blocks
    },
  }
}

function tarBody({ cid, car, packing, limits }: Found): Body {
  return {
    size: undefined,
    etag: `W/"${cid}.x-tar"`,
    cache: IMMUTABLE,
    headers: ['Content-Type', 'application/x-tar'],
    bytes: () => {
      const room = new ArchiveRoom(limits)
      return room.passing(tarOf(cid, car, packing, () => room.entry()))
    },
  }
}

/** @param own CID of the file; that of the path is its directory's for an `index.html` */
async function fileBody({ ask, cid, car }: Found, own: CID, name: string): Promise<Body> {
  const size = await car.fileSize(own)
  const beginning = await firstBytes(car, own, Math.min(size, SNIFFED_BYTES))
  const type = contentType(name, beginning, beginning.length === size)
  if (ask.kind !== undefined && type !== `application/${ask.kind}`) throw notOfKind(ask.kind)
  return {
    size,
    etag: `"${cid}"`,
    cache: IMMUTABLE,
    headers: ['Content-Type', type, ...(/html|xml/.test(type) ? SANDBOX : [])],
    bytes: (span) => {
      const { first, last } = span ?? { first: 0, last: size - 1 }
      return exactly(car.range(own, first, last), last - first + 1)
    },
  }
}

function symlinkBody(cid: CID, target: Uint8Array): Body {
  return {
    size: target.length,
    etag: `"${cid}"`,
    cache: IMMUTABLE,
    headers: ['Content-Type', 'inode/symlink'],
    bytes: (span) => one(span === undefined ? target : target.subarray(span.first, span.last + 1)),
  }
}

/** Its `index.html`, or else a page that lists it. */
async function directoryBody(found: Found): Promise<Body> {
  const { ask, cid, node, car, packing } = found
  const index = await packing.entryOf(node, 'index.html', car.block)
  if (index !== undefined) {
    const { link } = index
    if (packing.readNode(link.cid, await car.block(link.cid)).kind === 'file') {
      return fileBody(found, link.cid, 'index.html')
    }
  }
  return {
    size: undefined,
    etag: `"DirIndex-${LISTING_VERSION}_CID-${cid}"`,
    cache: LISTING_CACHED,
    headers: ['Content-Type', 'text/html; charset=utf-8', ...SANDBOX],
    nameless: true,
    bytes: () => listingPage(ask.path, cid.toString(), packing.entriesOf(cid, node, car.block)),
  }
}

async function firstBytes(car: Readable, cid: CID, count: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  if (count > 0) for await (const chunk of car.range(cid, 0, count - 1)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function notOfKind(kind: string): PaymentError {
  return new PaymentError('unacceptable', `this content is not ${kind}, and is not converted`)
}

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}

/**
 * What an archive may grow to. A directory that repeats itself at many levels has few blocks, and more paths than
 * anyone can read: an archive that names each of them would have no end.
 */
export class ArchiveRoom {
  readonly #bounds: Pick<PaymentLimits, 'maxArchiveEntries' | 'maxArchiveBytes'>
  #entries = 0
  #bytes = 0

  constructor(bounds: Pick<PaymentLimits, 'maxArchiveEntries' | 'maxArchiveBytes'>) {
    this.#bounds = bounds
  }

  /** Call it for each entry before it is sent. Throws when there are too many. */
  entry(): void {
    if (++this.#entries > this.#bounds.maxArchiveEntries) throw new Error('The archive has too many entries.')
  }

  /** Passes the bytes of the archive on; rejects with the first one too many. */
  async *passing(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of chunks) {
      this.#bytes += chunk.length
      if (this.#bytes > this.#bounds.maxArchiveBytes) throw new Error('The archive has too many bytes.')
      yield chunk
    }
  }

  /** Like `passing`, for an archive of which each chunk is an entry. */
  async *passingEntries(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of this.passing(chunks)) {
      this.entry()
      yield chunk
    }
  }
}
