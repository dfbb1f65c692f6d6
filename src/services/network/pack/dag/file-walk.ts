import type { CID } from 'multiformats/cid'
import { type BlockSource, type FileLink, notRetrievable, readFileNode } from './file-node.js'

/** With 1024 links per node, five levels hold more than any disk. */
const MAX_DEPTH = 32

/** The content of a block, or its link where it was not read. */
export type FilePart = { readonly content: Uint8Array } | { readonly unread: FileLink }

/**
 * Yields the parts of a file in order. Holds the nodes above the current one.
 * @param read whether to read the block of this link; an unread block is a leaf. The size of the root is unknown: NaN
 */
export async function* walkFile(
  root: CID,
  blocks: BlockSource,
  read: (link: FileLink) => boolean,
): AsyncIterable<FilePart> {
  /** The remaining links of each level, the next one last. */
  const ahead: FileLink[][] = [[{ cid: root, size: Number.NaN }]]
  for (let level = ahead.at(-1); level !== undefined; level = ahead.at(-1)) {
    const link = level.pop()
    if (link === undefined) {
      ahead.pop()
    } else if (!read(link)) {
      yield { unread: link }
    } else {
      const { content, links } = readFileNode(link.cid, await blocks.get(link.cid))
      if (content.length > 0) yield { content }
      if (links.length > 0 && ahead.length === MAX_DEPTH) throw notRetrievable(`The DAG of ${root} is too deep.`)
      if (links.length > 0) ahead.push(links.toReversed())
    }
  }
}
