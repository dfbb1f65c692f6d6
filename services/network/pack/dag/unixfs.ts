import { decode, type PBNode } from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { importFile, type WritableStorage } from 'ipfs-unixfs-importer'
import { CID } from 'multiformats/cid'
import { NetworkError } from '../../network.js'
import { SHA_256, sha256 } from '../sha256.js'

/** Destination of blocks: `put` is awaited, so it can apply backpressure. */
export type BlockSink = WritableStorage

export interface DagNode {
  readonly cid: CID
  /** Bytes of the block and all blocks beneath it: the Tsize of a link. */
  readonly size: number
}

/**
 * Profiles of IPIP-499. `unixfs-v1-2025`: CIDv1 with SHA-256, raw leaves of 1 MiB, balanced with 1024 links per node.
 * `unixfs-v0-2015`, what `ipfs add` does by default: CIDv0, leaves of 256 KiB as nodes, 174 links per node.
 */
type FileProfile = 'unixfs-v1-2025' | 'unixfs-v0-2015'

/** Writes a file. Holds up to ten of its chunks, and one link per full node of leaves. */
export async function putFile(
  content: AsyncIterable<Uint8Array>,
  blocks: BlockSink,
  profile: FileProfile = 'unixfs-v1-2025',
): Promise<DagNode> {
  const { cid, size } = await importFile({ content }, blocks, { profile })
  return { cid, size: Number(size) }
}

export interface NamedLink {
  /** In a shard, behind two digits; a link to a further shard has these alone. */
  readonly name: string
  readonly cid: CID
  /** Bytes of all blocks beneath, by the node. */
  readonly size: number
}

/** A node of a DAG of files. A large directory is a tree of shards. */
export type UnixfsNode =
  | ({ readonly kind: 'file' } & FileNode)
  | { readonly kind: 'directory' | 'shard'; readonly links: readonly NamedLink[] }
  | { readonly kind: 'symlink'; readonly target: Uint8Array }

/** Digits of a link name in a shard: of the only number of links per shard that is in use. */
export const SHARD_DIGITS = 2
const FANOUT = 256n

/** Throws NetworkError NotRetrievable when the block is none of them. */
export function readNode(cid: CID, block: Uint8Array): UnixfsNode {
  if (cid.code === RAW) return { kind: 'file', content: block, links: [] }
  const { node, unixfs } = parse(cid, block)
  switch (unixfs.type) {
    case 'directory':
      return { kind: 'directory', links: linksOf(node) }
    case 'hamt-sharded-directory':
      if (unixfs.fanout !== FANOUT)
        throw notRetrievable(`The directory ${cid} has other shards than of ${FANOUT} links.`)
      return { kind: 'shard', links: linksOf(node) }
    case 'symlink':
      return { kind: 'symlink', target: unixfs.data ?? new Uint8Array() }
    default:
      return { kind: 'file', ...readFileNode(cid, block) }
  }
}

function parse(cid: CID, block: Uint8Array): { readonly node: PBNode; readonly unixfs: UnixFS } {
  if (cid.code !== DAG_PB) throw notRetrievable(`The block ${cid} has another codec than dag-pb and raw.`)
  try {
    const node = decode(block)
    return { node, unixfs: UnixFS.unmarshal(node.Data ?? new Uint8Array()) }
  } catch (cause) {
    throw notRetrievable(`The block ${cid} is not part of a file or a directory.`, { cause })
  }
}

function linksOf({ Links }: PBNode): NamedLink[] {
  return Links.map(({ Name = '', Hash, Tsize = 0 }) => ({ name: Name, cid: Hash, size: Tsize }))
}

/** @throws NetworkError NotRetrievable */
export function parseCid(text: string): CID {
  try {
    return CID.parse(text)
  } catch (cause) {
    throw new NetworkError('NotRetrievable', `${JSON.stringify(text)} is no CID.`, { cause })
  }
}

/** Largest block that nodes of the network exchange; ours have little more than 1 MiB. */
export const MAX_BLOCK_BYTES = 2 * 1024 * 1024

/** Multicodecs. */
export const RAW = 0x55

export const DAG_PB = 0x70

/** The multihash of a CID that contains its block. */
export const IDENTITY = 0x00

/** Returns the block that hashes to the CID. Throws NetworkError NotRetrievable when it cannot. */
export interface BlockSource {
  get(cid: CID): Promise<Uint8Array>
}

interface FileNode {
  readonly content: Uint8Array
  readonly links: readonly FileLink[]
}

export interface FileLink {
  readonly cid: CID
  readonly size: number
}

/** Throws NetworkError NotRetrievable when the block is not part of a file. */
export function readFileNode(cid: CID, block: Uint8Array): FileNode {
  if (cid.code === RAW) return { content: block, links: [] }
  if (cid.code !== DAG_PB) throw notRetrievable(`The block ${cid} is not part of a file.`)
  try {
    const node = decode(block)
    const { type, data, blockSizes } = UnixFS.unmarshal(node.Data ?? new Uint8Array())
    if (type !== 'file' && type !== 'raw') throw new TypeError(`The node has the type ${type}.`)
    if (blockSizes.length !== node.Links.length) throw new TypeError('The node does not have one size per link.')
    const links = node.Links.map(({ Hash }, at) => ({ cid: Hash, size: Number(blockSizes[at]) }))
    return { content: data ?? new Uint8Array(), links }
  } catch (cause) {
    throw notRetrievable(`The block ${cid} is not part of a file.`, { cause })
  }
}

/** SHA-256 digest of a CID. Throws NetworkError NotRetrievable for any other hash. */
export function digestOf(cid: CID): Uint8Array {
  const { code, digest } = cid.multihash
  if (code !== SHA_256) throw notRetrievable(`The block ${cid} has a digest other than SHA-256.`)
  return digest
}

export const hashesTo = (block: Uint8Array, digest: Uint8Array): boolean => sha256(block).equals(digest)

/** The block. Throws NetworkError NotRetrievable when it does not hash to the CID. */
export function verifiedBlock(cid: CID, block: Uint8Array): Uint8Array {
  if (hashesTo(block, digestOf(cid))) return block
  throw notRetrievable(`The block ${cid} is damaged in the CAR.`)
}

export const notRetrievable = (message: string, options?: ErrorOptions): NetworkError =>
  new NetworkError('NotRetrievable', message, options)
