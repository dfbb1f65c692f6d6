import type { CID } from 'multiformats/cid'
import type { NamedLink, UnixfsNode } from '../../network/pack/index.js'

import type { Readable } from './headers.js'

const BLOCK = 512
/** What fits into the field of the size: eleven octal digits. */
const MOST_SIZE = 0o77777777777
/** Deeper directories are cut off: their paths grow without end. */
const MAX_DEPTH = 256

type Packing = typeof import('../../network/pack/index.js')

interface Entry {
  readonly path: string
  readonly cid: CID
}

/**
 * A TAR (POSIX.1-2001) of a file or a directory, which has the name of its CID in it, as gateways of IPFS make it.
 * Holds one block of each level. No name leads out of its directory: `entriesOf` checks them.
 * @param onEntry called before each entry; an error of it ends the archive
 */
export async function* tarOf(
  root: CID,
  car: Readable,
  packing: Packing,
  onEntry: () => void,
): AsyncIterable<Uint8Array> {
  const open: AsyncIterator<NamedLink>[] = []
  const paths: string[] = []
  const enter = async function* ({ path, cid }: Entry): AsyncIterable<Uint8Array> {
    onEntry()
    const node = packing.readNode(cid, await car.block(cid))
    yield* memberOf(path, cid, node, car)
    if (node.kind !== 'directory' && node.kind !== 'shard') return
    if (open.length === MAX_DEPTH) throw new Error('The directories are too deep.')
    open.push(packing.entriesOf(cid, node, car.block)[Symbol.asyncIterator]())
    paths.push(path)
  }
  yield* enter({ path: root.toString(), cid: root })
  for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
    const { done, value } = await level.next()
    if (done) {
      open.pop()
      paths.pop()
    } else yield* enter({ path: `${paths.at(-1)}/${value.name}`, cid: value.cid })
  }
  yield new Uint8Array(2 * BLOCK)
}

async function* memberOf(path: string, cid: CID, node: UnixfsNode, car: Readable): AsyncIterable<Uint8Array> {
  if (node.kind === 'symlink') {
    yield header({ path, kind: '2', size: 0, target: Buffer.from(node.target).toString('utf8') })
  } else if (node.kind === 'file') {
    const size = await car.fileSize(cid)
    yield header({ path, kind: '0', size, target: '' })
    if (size > 0) yield* exactly(car.range(cid, 0, size - 1), size)
    yield padding(size)
  } else yield header({ path: `${path}/`, kind: '5', size: 0, target: '' })
}

interface Header {
  readonly path: string
  /** Of the entry: file, symbolic link, directory, or what extends the next header. */
  readonly kind: '0' | '2' | '5' | 'x'
  readonly size: number
  readonly target: string
}

/** With an extended header in front where a field has no room for what it says. */
function header(entry: Header): Uint8Array {
  const fields = {
    ...(!fits(entry.path) && { path: entry.path }),
    ...(!fits(entry.target) && { linkpath: entry.target }),
    ...(entry.size > MOST_SIZE && { size: String(entry.size) }),
  }
  const records = Buffer.concat(Object.entries(fields).map(([name, value]) => record(name, value)))
  if (records.length === 0) return plainHeader(entry)
  const extended = plainHeader({ path: 'PaxHeader', kind: 'x', size: records.length, target: '' })
  const plain = {
    ...entry,
    path: short(entry.path),
    target: short(entry.target),
    size: Math.min(entry.size, MOST_SIZE),
  }
  return Buffer.concat([extended, records, padding(records.length), plainHeader(plain)])
}

const fits = (text: string): boolean => text.length <= 100 && /^[\x20-\x7e]*$/.test(text)

const short = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '_').slice(0, 100)

/** `<length of the record> <name>=<value>\n`; the length counts its own digits. */
function record(name: string, value: string): Buffer {
  const rest = Buffer.from(` ${name}=${value}\n`)
  let length = rest.length
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

function plainHeader({ path, kind, size, target }: Header): Buffer {
  const bytes = Buffer.alloc(BLOCK)
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`
  bytes.write(path, 0, 'latin1')
  bytes.write(octal(kind === '5' ? 0o755 : 0o644, 7), 100)
  bytes.write(octal(0, 7), 108)
  bytes.write(octal(0, 7), 116)
  bytes.write(octal(size, 11), 124)
  bytes.write(octal(0, 11), 136)
  bytes.write(' '.repeat(8), 148)
  bytes.write(kind, 156)
  bytes.write(target, 157, 'latin1')
  bytes.write('ustar\x0000', 257, 'latin1')
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return bytes
}

function padding(size: number): Uint8Array {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK)
}

/**
 * Passes bytes on if they are as many as announced; rejects with the first one too many, or at the end. The nodes of a
 * DAG may state other sizes than their leaves have, and what follows an answer on its connection is the next one.
 */
export async function* exactly(bytes: AsyncIterable<Uint8Array>, size: number): AsyncIterable<Uint8Array> {
  let left = size
  for await (const chunk of bytes) {
    left -= chunk.length
    if (left < 0) throw new Error('A file has more bytes than its root states.')
    yield chunk
  }
  if (left > 0) throw new Error('A file has fewer bytes than its root states.')
}
