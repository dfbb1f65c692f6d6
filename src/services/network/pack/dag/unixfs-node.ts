import { decode, type PBNode } from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import { DAG_PB, type FileNode, notRetrievable, RAW, readFileNode } from './file-node.js'

/** A link of a directory. */
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
