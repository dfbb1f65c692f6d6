import { decode } from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import { NetworkError } from '../../network.js'
import { SHA_256, sha256 } from '../sha256.js'

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

/** A node of a file: its own part of the content, then its links. */
export interface FileNode {
  readonly content: Uint8Array
  readonly links: readonly FileLink[]
}

export interface FileLink {
  readonly cid: CID
  /** Size of the content beneath, by the node. */
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

export const notRetrievable = (message: string, options?: ErrorOptions): NetworkError =>
  new NetworkError('NotRetrievable', message, options)
