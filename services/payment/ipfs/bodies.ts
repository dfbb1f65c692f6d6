import type { CID } from 'multiformats/cid'
import { needsSandbox } from '../../../common/sandbox.js'
import type { HeaderList } from '../../http/errors.js'
import type { Span } from '../../http/range.js'
import type { Resolved } from '../../network/pack/index.js'
import { PaymentError } from '../errors.js'
import type { PaymentLimits } from '../limits.js'
import type { ContentRequest } from './content-request.js'
import { contentType, SNIFFED_BYTES } from './content-type.js'
import { IMMUTABLE, type Readable, spanOf } from './headers.js'

type Packing = typeof import('../../network/pack/index.js')

export interface Body {
  /** Undefined when it is known at the end alone. */
  readonly size: number | undefined
  readonly etag: string
  /** How long it may be cached. */
  readonly cache: string
  readonly headers: HeaderList
  bytes(span: Span | undefined): AsyncIterable<Uint8Array>
}

interface FoundContent extends Resolved {
  readonly wanted: ContentRequest
  readonly car: Readable
  readonly packing: Packing
  readonly limits: PaymentLimits
}

/** Pages of contents have an origin of their own: they cannot act as this one, nor as each other. */
const SANDBOX: HeaderList = [
  'Content-Security-Policy',
  'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads',
]

/** Rejects with PaymentError `unacceptable` when the content has no such form. */
export async function bodyOf(found: FoundContent): Promise<Body> {
  const { wanted, cid, node, car } = found
  switch (wanted.form) {
    case 'raw':
      return bytesBody(await car.block(cid), `${cid}.raw`, 'application/vnd.ipld.raw')
    case 'car':
      return carBody(found)
    case 'file':
      if (node.kind === 'file') return fileBody(found, cid, wanted.fileName ?? wanted.path.names.at(-1) ?? '')
      if (wanted.kind !== undefined) throw notOfKind(wanted.kind)
      if (node.kind === 'symlink') return bytesBody(node.target, cid.toString(), 'inode/symlink')
      return directoryBody(found)
  }
}

function bytesBody(bytes: Uint8Array, etag: string, type: string): Body {
  return {
    size: bytes.length,
    etag: `"${etag}"`,
    cache: IMMUTABLE,
    headers: ['Content-Type', type, ...SANDBOX],
    bytes: (span) => one(span === undefined ? bytes : bytes.subarray(span.first, span.last + 1)),
  }
}

async function carBody({ wanted, cid, node, car, above, limits }: FoundContent): Promise<Body> {
  const { scope, duplicates, bytes } = wanted.car
  const isPart = bytes !== undefined && node.kind === 'file'
  const span = isPart ? spanOf(wanted.car, await car.fileSize(cid)) : undefined
  const shape = [
    scope,
    duplicates ? 'y' : 'n',
    bytes?.from ?? '',
    bytes?.to ?? '',
    ...wanted.path.names.map(encodeURIComponent),
  ]
  return {
    size: undefined,
    etag: `W/"${cid}.car.${shape.join('.')}"`,
    cache: IMMUTABLE,
    headers: [
      'Content-Type',
      `application/vnd.ipld.car; version=1; order=dfs; dups=${duplicates ? 'y' : 'n'}`,
      ...SANDBOX,
    ],
    bytes: () => {
      // Without duplicates, it has no more than the content.
      if (!duplicates) return car.export(cid, { scope, duplicates, span, above })
      const maxBlocks = limits.maxArchiveEntries
      return bounded(car.export(cid, { scope, duplicates, span, above, maxBlocks }), limits)
    },
  }
}

/** @param own CID of the file; that of the path is its directory's for an `index.html` */
async function fileBody({ wanted, cid, car }: FoundContent, own: CID, name: string): Promise<Body> {
  const size = await car.fileSize(own)
  const beginning = await firstBytes(car, own, Math.min(size, SNIFFED_BYTES))
  const type = contentType(name, beginning, beginning.length === size)
  if (wanted.kind !== undefined && type !== `application/${wanted.kind}`) throw notOfKind(wanted.kind)
  return {
    size,
    etag: `"${cid}"`,
    cache: IMMUTABLE,
    headers: ['Content-Type', type, ...(needsSandbox(type) ? SANDBOX : [])],
    bytes: (span) => {
      const { first, last } = span ?? { first: 0, last: size - 1 }
      return exactly(car.range(own, first, last), last - first + 1)
    },
  }
}

/** Its `index.html`. Rejects with PaymentError `unacceptable` for a directory without. */
async function directoryBody(found: FoundContent): Promise<Body> {
  const { node, car, packing } = found
  const index = await packing.entryOf(node, 'index.html', car.block)
  if (index !== undefined) {
    const { link } = index
    if (packing.readNode(link.cid, await car.block(link.cid)).kind === 'file') {
      return fileBody(found, link.cid, 'index.html')
    }
  }
  throw new PaymentError(
    'unacceptable',
    'this is a directory without index.html: name a file in it, or ask for format=car',
  )
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
 * Bounds the bytes of a CAR with duplicates; what makes it bounds its blocks. A directory that repeats itself at many
 * levels has few blocks and more paths than can be sent: a CAR that has a block for each path would have no end.
 */
async function* bounded(
  chunks: AsyncIterable<Uint8Array>,
  { maxArchiveBytes }: PaymentLimits,
): AsyncIterable<Uint8Array> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxArchiveBytes) throw new Error('The CAR has too many bytes.')
    yield chunk
  }
}

/**
 * Passes bytes on if they are as many as announced; rejects with the first one too many, or at the end. The nodes of a
 * DAG may state other sizes than their leaves have, and what follows an answer on its connection is the next one.
 */
async function* exactly(bytes: AsyncIterable<Uint8Array>, size: number): AsyncIterable<Uint8Array> {
  let left = size
  for await (const chunk of bytes) {
    left -= chunk.length
    if (left < 0) throw new Error('A file has more bytes than its root states.')
    yield chunk
  }
  if (left > 0) throw new Error('A file has fewer bytes than its root states.')
}
