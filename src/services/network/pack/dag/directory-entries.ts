import type { CID } from 'multiformats/cid'
import { Barren } from './barren.js'
import { hashOfName, longerHash } from './directory.js'
import { requireNames } from './entry-names.js'
import { notRetrievable } from './file-node.js'
import { type NamedLink, readNode, SHARD_DIGITS, type UnixfsNode } from './unixfs-node.js'

/** Gives a verified block, or throws NetworkError NotRetrievable. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>

/** Deeper than the digits of the longest hash of a name reach. */
const MAX_DEPTH = 48

/**
 * The entries of a directory, in the order of its blocks. Holds one block of each level of shards. Checks the names
 * again: one digest is that of a file and of the node with its bytes, and the bytes of a file were no directory when it
 * came.
 * @param cid of the directory
 */
export async function* entriesOf(cid: CID, node: UnixfsNode, block: ReadBlock): AsyncIterable<NamedLink> {
  if (node.kind === 'directory') {
    requireNames(cid, node.links, false)
    yield* node.links
  } else if (node.kind === 'shard') yield* entriesOfShard(cid, node.links, { block, barren: new Barren(cid) }, '')
}

interface Walk {
  readonly block: ReadBlock
  readonly barren: Barren
}

/** @param place digits that lead to the shard */
async function* entriesOfShard(
  cid: CID,
  links: readonly NamedLink[],
  walk: Walk,
  place: string,
): AsyncIterable<NamedLink> {
  requireNames(cid, links, true)
  for (const link of links) {
    const at = place + link.name.slice(0, SHARD_DIGITS).toUpperCase()
    if (link.name.length > SHARD_DIGITS) {
      const name = link.name.slice(SHARD_DIGITS)
      // With two places, a name could be a symbolic link and a directory that is unpacked through it.
      if (!placesOf(name, at.length).startsWith(at))
        throw notRetrievable(`The directory ${cid} has the name ${JSON.stringify(name)} in a wrong shard.`)
      walk.barren.found()
      yield { ...link, name }
    } else {
      walk.barren.read()
      const shard = await shardOf(link, walk.block, place.length / SHARD_DIGITS)
      yield* entriesOfShard(link.cid, shard.links, walk, at)
    }
  }
}

/** Digits of the places of a name in shards, at least as many as are wanted. */
function placesOf(name: string, digits: number): string {
  const hash = hashOfName(name)
  return (digits <= hash.length ? hash : hash + longerHash(name)).toUpperCase()
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
