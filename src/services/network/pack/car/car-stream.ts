import { encode } from '@ipld/dag-cbor'
import { varint } from 'multiformats'
import type { CID } from 'multiformats/cid'
import { IDENTITY, RAW, readFileNode } from '../dag/file-node.js'

/** Which blocks of a file are sent. */
export interface CarScope {
  /** Only the root. */
  readonly rootAlone: boolean
  /** A block that occurs several times is sent as often, instead of once. */
  readonly duplicates: boolean
  /** Only blocks with these bytes of the file, inclusive, and the nodes above them. */
  readonly span?: { readonly first: number; readonly last: number } | undefined
}

/**
 * Yields a CARv1 of the file beneath `root`: depth first, each node before what it links to. A block that its CID
 * contains is never sent. Without duplicates, it holds the CIDs of its blocks.
 * @param block gives a verified block
 */
export async function* carOf(
  root: CID,
  block: (cid: CID) => Promise<Uint8Array>,
  { rootAlone, duplicates, span }: CarScope,
): AsyncIterable<Uint8Array> {
  yield section(encode({ version: 1, roots: [root] }))
  const seen = new Set<string>()
  const ahead = [{ cid: root, position: 0 }]
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const { cid, position } = next
    const name = cid.toString()
    if (seen.has(name) && span === undefined) continue
    const bytes = await block(cid)
    if (!seen.has(name) && cid.multihash.code !== IDENTITY) yield section(cid.bytes, bytes)
    if (!duplicates) seen.add(name)
    if (cid.code === RAW || rootAlone) continue
    ahead.push(...linked(cid, bytes, position, span).reverse())
  }
}

/** The links of a node that lead to bytes of the span, with the positions at which they begin. */
function linked(cid: CID, bytes: Uint8Array, begin: number, span: CarScope['span']): { cid: CID; position: number }[] {
  const { content, links } = readFileNode(cid, bytes)
  let position = begin + content.length
  return links.flatMap((link) => {
    const from = position
    position += link.size
    const isIn = span === undefined || (position > span.first && from <= span.last)
    return isIn ? [{ cid: link.cid, position: from }] : []
  })
}

/** The parts behind their length. */
function section(...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const head = varint.encodeTo(length, new Uint8Array(varint.encodingLength(length)))
  return Buffer.concat([head, ...parts])
}
