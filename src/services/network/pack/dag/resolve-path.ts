import type { CID } from 'multiformats/cid'
import { entryOf, type ReadBlock } from './directory-entries.js'
import { notRetrievable } from './file-node.js'
import { readNode, type UnixfsNode } from './unixfs-node.js'

/** What a path leads to. */
export interface Resolved {
  readonly cid: CID
  readonly node: UnixfsNode
  /** The root, and what each name of the path leads to. */
  readonly roots: readonly CID[]
  /** The blocks above it: directories and their shards. */
  readonly above: readonly CID[]
}

/** Follows names from a root. Throws NetworkError NotRetrievable when there is no such link. */
export async function resolvePath(root: CID, names: readonly string[], block: ReadBlock): Promise<Resolved> {
  const roots = [root]
  const above: CID[] = []
  let cid = root
  let node = readNode(cid, await block(cid))
  for (const name of names) {
    const found = await entryOf(node, name, block)
    if (found === undefined) throw notRetrievable(`There is no link ${JSON.stringify(name)} in ${cid}.`)
    above.push(cid, ...found.shards)
    cid = found.link.cid
    node = readNode(cid, await block(cid))
    roots.push(cid)
  }
  return { cid, node, roots, above }
}
