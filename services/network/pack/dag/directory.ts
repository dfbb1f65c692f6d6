import { setImmediate as othersTurn } from 'node:timers/promises'
import { encode, type PBLink, prepare } from '@ipld/dag-pb'
import { murmur364 } from '@multiformats/murmur3'
import { UnixFS } from 'ipfs-unixfs'
import { varint } from 'multiformats'
import { CID } from 'multiformats/cid'
import { digestSha256, sha256 } from '../sha256.js'
import {
  type BlockSink,
  DAG_PB,
  type DagNode,
  type NamedLink,
  notRetrievable,
  readNode,
  SHARD_DIGITS,
  type UnixfsNode,
} from './unixfs.js'

/** An entry of a directory in few bytes: there may be millions. */
export interface DirectoryEntry {
  readonly name: string
  /** Bytes of the CID, one character each. */
  readonly cid: string
  readonly size: number
}

/** Limit of the profile: a directory whose block would be larger becomes a HAMT of nodes with up to 256 links. */
const MAX_FLAT_BYTES = 256 * 1024
const FANOUT = 256

/** Levels that the 64 bits of a hash provide. */
const LEVELS_OF_A_HASH = 8

/** A batch of hashes takes some milliseconds. */
const HASHES_PER_TURN = 1024

/** Multihash code of murmur3-x64-64. */
const MURMUR3 = 0x22n

export const directoryEntry = (name: string, { cid, size }: DagNode): DirectoryEntry => ({
  name,
  cid: Buffer.from(cid.bytes).toString('latin1'),
  size,
})

export async function putDirectory(entries: readonly DirectoryEntry[], blocks: BlockSink): Promise<DagNode> {
  if (fitsInOneBlock(entries)) {
    const links = entries.map((entry) => link(entry.name, entry))
    return putNode(new UnixFS({ type: 'directory' }), links, blocks)
  }
  const members: Member[] = []
  for (const entry of entries) {
    members.push({ hash: hashOfName(entry.name), entry })
    if (members.length % HASHES_PER_TURN === 0) await othersTurn()
  }
  return putShard(members, 0, blocks)
}

function fitsInOneBlock(entries: readonly DirectoryEntry[]): boolean {
  // Encoded size of an empty UnixFS directory: field, length, and two bytes for the type.
  let bytes = 4
  for (const { name, cid, size } of entries) {
    const fields = field(cid.length) + field(Buffer.byteLength(name)) + 1 + varint.encodingLength(size)
    bytes += field(fields)
    if (bytes > MAX_FLAT_BYTES) return false
  }
  return true
}

const field = (length: number): number => 1 + varint.encodingLength(length) + length

interface Member {
  /** Hex; two digits per level are the prefix of the link names. */
  hash: string
  readonly entry: DirectoryEntry
}

/** Hex of the hash by which a directory is sharded. */
const hashOfName = (name: string): string =>
  Buffer.from(murmur364.encode(Buffer.from(name)) as Uint8Array).toString('hex')

/** Hex of what follows this hash where names have the same one. */
const longerHash = (name: string): string => sha256(Buffer.from(name)).toString('hex')

/** @param members have the same hash up to this level */
async function putShard(members: readonly Member[], level: number, blocks: BlockSink): Promise<DagNode> {
  if (level === LEVELS_OF_A_HASH) lengthenHashes(members)
  const bits = Buffer.alloc(FANOUT / 8)
  const links: PBLink[] = []
  for (const [place, group] of spread(members, level)) {
    const prefix = place.toString(16).padStart(2, '0').toUpperCase()
    const [first] = group
    if (first === undefined) continue
    if (group.length === 1) links.push(link(prefix + first.entry.name, first.entry))
    else links.push(linkTo(prefix, await putShard(group, level + 1, blocks)))
    setBit(bits, place)
  }
  const data = bits.subarray(bits.findIndex((byte) => byte !== 0))
  const shard = new UnixFS({ type: 'hamt-sharded-directory', data, fanout: BigInt(FANOUT), hashType: MURMUR3 })
  return putNode(shard, links, blocks)
}

/** Groups members by their position in a shard of this level. */
function spread(members: readonly Member[], level: number): Map<number, Member[]> {
  const places = new Map<number, Member[]>()
  for (const member of members) {
    const place = Number.parseInt(member.hash.slice(2 * level, 2 * level + 2), 16)
    const there = places.get(place)
    if (there === undefined) places.set(place, [member])
    else there.push(member)
  }
  return places
}

/**
 * Names whose 64 bits all agree, which anyone can construct, are distinguished by SHA-256: the specification does not
 * cover them, and the importer never ends. Other software still lists them, but does not find them by path.
 */
function lengthenHashes(members: readonly Member[]): void {
  for (const member of members) member.hash += longerHash(member.entry.name)
}

/** Bit 0 is the lowest bit of the last byte. */
function setBit(bits: Uint8Array, bit: number): void {
  const at = bits.length - 1 - (bit >>> 3)
  bits[at] = (bits[at] ?? 0) | (1 << (bit & 7))
}

const link = (name: string, { cid, size }: DirectoryEntry): PBLink => ({
  Name: name,
  Hash: CID.decode(Buffer.from(cid, 'latin1')),
  Tsize: size,
})

const linkTo = (name: string, { cid, size }: DagNode): PBLink => ({ Name: name, Hash: cid, Tsize: size })

async function putNode(unixfs: UnixFS, links: PBLink[], blocks: BlockSink): Promise<DagNode> {
  const block = encode(prepare({ Data: unixfs.marshal(), Links: links }))
  const cid = CID.createV1(DAG_PB, digestSha256(block))
  await blocks.put(cid, block)
  return { cid, size: links.reduce((sum, { Tsize = 0 }) => sum + Tsize, block.length) }
}

/** Gives a verified block, or throws NetworkError NotRetrievable. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>

/** Deeper than the digits of the longest hash of a name reach. */
const MAX_DEPTH = 48

/** Digits of the places of a name in shards, at least as many as are wanted. */
function placesOf(name: string, digits: number): string {
  const hash = hashOfName(name)
  return (digits <= hash.length ? hash : hash + longerHash(name)).toUpperCase()
}

interface FoundEntry {
  readonly link: NamedLink
  /** The shards below the first one that lead to it. */
  readonly shards: readonly CID[]
}

export async function entryOf(node: UnixfsNode, name: string, block: ReadBlock): Promise<FoundEntry | undefined> {
  if (node.kind !== 'directory' && node.kind !== 'shard') return undefined
  if (node.kind === 'directory') {
    const link = node.links.find((one) => one.name === name)
    return link && { link, shards: [] }
  }
  const places = placesOf(name, Number.POSITIVE_INFINITY)
  const shards: CID[] = []
  let shard: UnixfsNode = node
  for (let depth = 0; shard.kind === 'shard' && depth < MAX_DEPTH; depth++) {
    const at = depth * SHARD_DIGITS
    const digits = places.slice(at, at + SHARD_DIGITS)
    const link: NamedLink | undefined = shard.links.find((one) => one.name === digits || one.name === digits + name)
    if (link === undefined || link.name.length > SHARD_DIGITS) return link && { link: { ...link, name }, shards }
    shards.push(link.cid)
    shard = await shardOf(link, block, depth)
  }
  return undefined
}

async function shardOf({ cid }: NamedLink, block: ReadBlock, depth: number): Promise<UnixfsNode & { kind: 'shard' }> {
  const node = readNode(cid, await block(cid))
  if (node.kind !== 'shard' || depth >= MAX_DEPTH) throw notRetrievable(`The block ${cid} is no shard of a directory.`)
  return { ...node, kind: node.kind }
}

/** File systems have names of 255 bytes. Paths below a directory are as long as all names above a file together. */
const MAX_NAME = 1024

/**
 * Checks the names in a block of a directory: one that leads out of the directory would do so where it is unpacked.
 * @throws NetworkError NotRetrievable
 */
export function requireNames(cid: CID, links: readonly NamedLink[], isShard: boolean): void {
  const names = new Set<string>()
  for (const { name } of links) {
    const own = isShard ? name.slice(SHARD_DIGITS) : name
    const leadsToShard = isShard && name.length === SHARD_DIGITS
    if (names.has(name) || (!leadsToShard && (/^(\.{0,2})$|[/\0]/.test(own) || !own.isWellFormed()))) {
      throw notRetrievable(`The directory ${cid} has the name ${JSON.stringify(name)} twice, or no entry can have it.`)
    }
    if (name.length > MAX_NAME)
      throw notRetrievable(`The directory ${cid} has a name of more than ${MAX_NAME} characters.`)
    names.add(name)
  }
}

/**
 * Counts the blocks that are read one after another without anything for the reader. A DAG of a few blocks that others
 * made can have more paths than anything can walk, and none of them may lead to a byte.
 */
export class EmptyReadLimit {
  readonly #root: CID
  #blocks = 0

  constructor(root: CID) {
    this.#root = root
  }

  /** Call it before each block. Throws NetworkError NotRetrievable. */
  read(): void {
    if (++this.#blocks > MAX_ENTRIES) throw notRetrievable(`The DAG of ${this.#root} has too many paths to nothing.`)
  }

  /** The reader gets something. */
  found(): void {
    this.#blocks = 0
  }
}

/** Blocks that are read for one piece of a true file or directory: fewer than it has levels. */
const MAX_ENTRIES = 1000
