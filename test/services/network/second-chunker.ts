import { createHash } from 'node:crypto'
import { murmur3 } from './second-murmur.js'

/**
 * A second implementation of the profile `unixfs-v1-2025`, written from the specifications of UnixFS, dag-pb and CID
 * alone, to compare the first one with: chunks of 1 MiB as raw leaves, 1024 links to a node, CIDv1 with SHA-256 in
 * base32, directories of more than 256 KiB sharded.
 */
export const CHUNK_BYTES = 1024 * 1024
const WIDTH = 1024
const FLAT_BYTES = 256 * 1024

const RAW = 0x55
const DAG_PB = 0x70

interface Node {
  readonly cid: Buffer
  /** Bytes of all blocks beneath and of its own. */
  readonly total: number
  /** Bytes of the file beneath. */
  readonly content: number
}

/** Folders and files by name; a file too large to be held gives its chunks. */
export interface Folder {
  readonly [name: string]: Uint8Array | (() => Iterable<Uint8Array>) | Folder
}

export function fileCid(content: Uint8Array): string {
  return chunkedCid(chunksOf(content))
}

/** Of a file that is given as its chunks: each of 1 MiB but the last. */
export function chunkedCid(chunks: Iterable<Uint8Array>): string {
  return text(balanced(chunks).cid)
}

export function folderCid(folder: Folder): string {
  return text(directory(folder).cid)
}

function* chunksOf(content: Uint8Array): Iterable<Uint8Array> {
  for (let at = 0; at === 0 || at < content.length; at += CHUNK_BYTES) yield content.subarray(at, at + CHUNK_BYTES)
}

function balanced(chunks: Iterable<Uint8Array>): Node {
  let level: Node[] = []
  // A large file may give one chunk many times.
  const leaves = new Map<Uint8Array, Node>()
  for (const chunk of chunks) {
    const leaf = leaves.get(chunk) ?? { cid: cid(RAW, chunk), total: chunk.length, content: chunk.length }
    leaves.set(chunk, leaf)
    level.push(leaf)
  }
  while (level.length > 1) {
    const above: Node[] = []
    for (let at = 0; at < level.length; at += WIDTH) above.push(fileNode(level.slice(at, at + WIDTH)))
    level = above
  }
  const [root] = level
  if (root === undefined) throw new Error('An empty file has one chunk.')
  return root
}

function fileNode(children: readonly Node[]): Node {
  const content = children.reduce((sum, child) => sum + child.content, 0)
  const unixfs = [number(1, 2), number(3, content), ...children.map((child) => number(4, child.content))]
  const links = children.map((child): Link => ['', child])
  return { ...branch(links, unixfs), content }
}

function directory(folder: Folder): Node {
  const links = Object.entries(folder).map(([name, held]): Link => [name, entry(held)])
  const flat = branch(links, [number(1, 1)])
  if (flat.block.length <= FLAT_BYTES) return { ...flat, content: 0 }
  const trie: Trie = new Map()
  for (const link of links) insert(trie, link, 0)
  return shard(trie)
}

/** A link at each place of a shard, or the shard below it. */
type Trie = Map<number, Link | Trie>

function insert(trie: Trie, link: Link, level: number): void {
  const name = Buffer.from(link[0])
  const place = Buffer.concat([murmur3(name), createHash('sha256').update(name).digest()])[level] ?? 0
  const there = trie.get(place)
  if (there === undefined) trie.set(place, link)
  else if (there instanceof Map) insert(there, link, level + 1)
  else {
    const below: Trie = new Map()
    trie.set(place, below)
    insert(below, there, level + 1)
    insert(below, link, level + 1)
  }
}

function shard(trie: Trie): Node {
  let field = 0n
  const links: Link[] = []
  for (const [place, held] of trie) {
    field |= 1n << BigInt(place)
    const prefix = place.toString(16).padStart(2, '0').toUpperCase()
    links.push(held instanceof Map ? [prefix, shard(held)] : [prefix + held[0], held[1]])
  }
  const hex = field.toString(16)
  const data = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return { ...branch(links, [number(1, 5), bytes(2, data), number(5, 0x22), number(6, 256)]), content: 0 }
}

function entry(held: Folder[string]): Node {
  if (held instanceof Uint8Array) return balanced(chunksOf(held))
  return typeof held === 'function' ? balanced(held()) : directory(held)
}

type Link = readonly [name: string, child: Node]

interface Branch {
  readonly cid: Buffer
  readonly total: number
  readonly block: Buffer
}

/** A block of dag-pb: all links in the order of their names, then the data. */
function branch(links: readonly Link[], unixfs: readonly Buffer[]): Branch {
  const inOrder = [...links].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  const block = Buffer.concat([
    ...inOrder.map(([name, child]) =>
      bytes(2, Buffer.concat([bytes(1, child.cid), bytes(2, Buffer.from(name)), number(3, child.total)])),
    ),
    bytes(1, Buffer.concat(unixfs)),
  ])
  return { cid: cid(DAG_PB, block), total: links.reduce((sum, [, child]) => sum + child.total, block.length), block }
}

const number = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)])

const bytes = (field: number, value: Uint8Array): Buffer =>
  Buffer.concat([varint((field << 3) | 2), varint(value.length), value])

function varint(value: number): Buffer {
  const digits: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...digits, rest])
    digits.push((rest % 128) | 128)
  }
}

function cid(codec: number, block: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([1, codec, 0x12, 32]), createHash('sha256').update(block).digest()])
}

function text(cid: Buffer): string {
  let bits = ''
  for (const byte of cid) bits += byte.toString(2).padStart(8, '0')
  const digits = bits.match(/.{1,5}/g) ?? []
  return `b${digits.map((digit) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(digit.padEnd(5, '0'), 2)]).join('')}`
}
