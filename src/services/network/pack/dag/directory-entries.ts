import type { CID } from 'multiformats/cid'
import { Barren } from './barren.js'
import { hashOfName, longerHash } from './directory.js'
import { notRetrievable } from './file-node.js'
import { type NamedLink, readNode, SHARD_DIGITS, type UnixfsNode } from './unixfs-node.js'

/** Gives a verified block, or throws NetworkError NotRetrievable. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>

/** Deeper than the digits of the longest hash of a name reach. */
const MAX_DEPTH = 48

/**
 * The entries of a directory, in the order of its blocks. Holds one block of each level of shards.
 * @param cid of the directory
 */
export async function* entriesOf(cid: CID, node: UnixfsNode, block: ReadBlock): AsyncIterable<NamedLink> {
  if (node.kind === 'directory') yield* node.links
  else if (node.kind === 'shard') yield* entriesOfShard(node.links, block, new Barren(cid), 0)
}

async function* entriesOfShard(
  links: readonly NamedLink[],
  block: ReadBlock,
  barren: Barren,
  depth: number,
): AsyncIterable<NamedLink> {
  for (const link of links) {
    if (link.name.length > SHARD_DIGITS) {
      barren.found()
      yield { ...link, name: link.name.slice(SHARD_DIGITS) }
    } else {
      barren.read()
      const shard = await shardOf(link, block, depth)
      yield* entriesOfShard(shard.links, block, barren, depth + 1)
    }
  }
}

/** What is found of a name. */
export interface Found {
  readonly link: NamedLink
  /** The shards below the first one that lead to it. */
  readonly shards: readonly CID[]
}

/** The entry with that name; undefined when the node has none. */
export async function entryOf(node: UnixfsNode, name: string, block: ReadBlock): Promise<Found | undefined> {
  if (node.kind !== 'directory' && node.kind !== 'shard') return undefined
  if (node.kind === 'directory') {
    const link = node.links.find((one) => one.name === name)
    return link && { link, shards: [] }
  }
  const hash = hashOfName(name) + longerHash(name)
  const shards: CID[] = []
  let shard: UnixfsNode = node
  for (let depth = 0; shard.kind === 'shard' && depth < MAX_DEPTH; depth++) {
    const at = depth * SHARD_DIGITS
    const digits = hash.slice(at, at + SHARD_DIGITS).toUpperCase()
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
