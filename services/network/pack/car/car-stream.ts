import { encode } from '@ipld/dag-cbor'
import { varint } from 'multiformats'
import type { CID } from 'multiformats/cid'
import { EmptyReadLimit } from '../dag/directory.js'
import { IDENTITY, type NamedLink, RAW, readNode, SHARD_DIGITS } from '../dag/unixfs.js'

/** The blocks that are sent. */
export interface CarScope {
  /** The root alone; with what it consists of, for a directory its shards; or with all that it links to. */
  readonly scope: 'block' | 'entity' | 'all'
  /** A block that occurs several times is sent as often, instead of once. */
  readonly duplicates: boolean
  /** Limits the blocks to those with these bytes of the file, inclusive, and the nodes above them. */
  readonly span?: { readonly first: number; readonly last: number } | undefined
  /** Blocks that lead to the root, sent before it. */
  readonly above?: readonly CID[]
  /** Most blocks that are sent: one more ends the CAR with an error. Default: no bound. */
  readonly maxBlocks?: number | undefined
}

/** What can be read as a CAR: see `carOf`. */
export interface CarSource {
  export(root: CID, scope: CarScope): AsyncIterable<Uint8Array>
}

/**
 * Yields a CARv1 of what is beneath `root`: depth first, each node before what it links to. A block that its CID
 * contains is never sent. Without duplicates, it holds the CIDs of its blocks.
 * @param block gives a verified block
 */
export async function* carOf(
  root: CID,
  block: (cid: CID) => Promise<Uint8Array>,
  { scope, duplicates, span, above = [], maxBlocks = Number.POSITIVE_INFINITY }: CarScope,
): AsyncIterable<Uint8Array> {
  yield section(encode({ version: 1, roots: [root] }))
  const seen = new Set<string>()
  const isNew = (cid: CID): boolean => cid.multihash.code !== IDENTITY && !seen.has(cid.toString())
  let sent = 0
  const sectionOf = (cid: CID, bytes: Uint8Array): Uint8Array => {
    if (++sent > maxBlocks) throw new Error('The CAR has too many blocks.')
    return section(cid.bytes, bytes)
  }
  for (const cid of above) {
    if (isNew(cid)) yield sectionOf(cid, await block(cid))
    if (!duplicates) seen.add(cid.toString())
  }
  // What is beneath them is sent, or is ahead.
  const followed = new Set<string>()
  const limit = new EmptyReadLimit(root)
  const ahead: Ahead[] = [{ cid: root, position: 0, isWhole: span === undefined }]
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const { cid, isWhole } = next
    if (followed.has(cid.toString())) continue
    if (cid.multihash.code !== IDENTITY) limit.read()
    const bytes = await block(cid)
    if (isNew(cid)) {
      limit.found()
      yield sectionOf(cid, bytes)
    }
    if (!duplicates) seen.add(cid.toString())
    if (!duplicates && isWhole) followed.add(cid.toString())
    if (cid.code === RAW || scope === 'block') continue
    ahead.push(...linked(next, bytes, scope, span).reverse())
  }
}

interface Ahead {
  readonly cid: CID
  /** At which the bytes beneath begin, in a file. */
  readonly position: number
  /** All that is beneath is wanted. */
  readonly isWhole: boolean
}

function linked(
  { cid, position: begin, isWhole }: Ahead,
  bytes: Uint8Array,
  scope: CarScope['scope'],
  span: CarScope['span'],
): Ahead[] {
  const node = readNode(cid, bytes)
  if (node.kind === 'symlink') return []
  if (node.kind !== 'file') {
    const isShard = ({ name }: NamedLink): boolean => node.kind === 'shard' && name.length === SHARD_DIGITS
    const links = scope === 'all' ? node.links : node.links.filter(isShard)
    return links.map((link) => ({ cid: link.cid, position: 0, isWhole }))
  }
  let position = begin + node.content.length
  return node.links.flatMap((link) => {
    const from = position
    position += link.size
    const isIn = span === undefined || (position > span.first && from <= span.last)
    const lies = span !== undefined && from >= span.first && position - 1 <= span.last
    return isIn ? [{ cid: link.cid, position: from, isWhole: isWhole || lies }] : []
  })
}

/** The parts behind their length. */
function section(...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const head = varint.encodeTo(length, new Uint8Array(varint.encodingLength(length)))
  return Buffer.concat([head, ...parts])
}
