import { createHash } from 'node:crypto'
import { base58btc } from 'multiformats/bases/base58'

/**
 * A second implementation of the profile `unixfs-v0-2015`, written from the specifications of UnixFS and dag-pb alone:
 * chunks of 256 KiB, each a node with its data, 174 links to a node, CIDv0.
 */
export const CHUNK_BYTES = 256 * 1024
export const WIDTH = 174

interface Node {
  readonly hash: Buffer
  /** Bytes of all blocks beneath and of its own. */
  readonly total: number
  /** Bytes of the file beneath. */
  readonly content: number
}

/** The CIDv0 of a file that is given as its chunks: each of 256 KiB but the last; none for an empty file. */
export function cidOfChunks(chunks: Iterable<Uint8Array>): string {
  let level: Node[] = []
  for (const chunk of chunks) level.push(node(chunk, chunk.length, []))
  if (level.length === 0) level.push(node(new Uint8Array(), 0, []))
  while (level.length > 1) {
    const above: Node[] = []
    for (let at = 0; at < level.length; at += WIDTH) {
      const children = level.slice(at, at + WIDTH)
      const content = children.reduce((sum, child) => sum + child.content, 0)
      above.push(node(undefined, content, children))
    }
    level = above
  }
  return base58btc.baseEncode((level[0] as Node).hash)
}

/** @param data of a leaf */
function node(data: Uint8Array | undefined, content: number, children: readonly Node[]): Node {
  const unixfs = Buffer.concat([
    number(1, 2),
    ...(data === undefined || data.length === 0 ? [] : [bytes(2, data)]),
    number(3, content),
    ...children.map((child) => number(4, child.content)),
  ])
  const links = children.map(({ hash, total }) =>
    bytes(2, Buffer.concat([bytes(1, hash), bytes(2, Buffer.alloc(0)), number(3, total)])),
  )
  const block = Buffer.concat([...links, bytes(1, unixfs)])
  const digest = createHash('sha256').update(block).digest()
  const total = block.length + children.reduce((sum, child) => sum + child.total, 0)
  return { hash: Buffer.concat([Buffer.of(0x12, 0x20), digest]), total, content }
}

function number(field: number, value: number): Buffer {
  return Buffer.concat([varint(field << 3), varint(value)])
}

function bytes(field: number, value: Uint8Array): Buffer {
  return Buffer.concat([varint((field << 3) | 2), varint(value.length), value])
}

function varint(value: number): Buffer {
  const out: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) out.push((rest % 128) | 0x80)
  return Buffer.from([...out, rest])
}
