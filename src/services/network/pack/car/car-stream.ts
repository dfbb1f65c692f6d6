import { encode } from '@ipld/dag-cbor'
import { decode } from '@ipld/dag-pb'
import { varint } from 'multiformats'
import type { CID } from 'multiformats/cid'
import { RAW } from '../dag/file-node.js'

/**
 * Yields a CARv1 of the DAG beneath `root`: depth first, each node before what it links to, each block once. Holds the
 * CIDs of its blocks.
 * @param block gives a verified block
 * @param scope `block` for the root alone
 */
export async function* carOf(
  root: CID,
  block: (cid: CID) => Promise<Uint8Array>,
  scope: 'all' | 'block',
): AsyncIterable<Uint8Array> {
  yield section(encode({ version: 1, roots: [root] }))
  const seen = new Set<string>()
  const ahead: CID[] = [root]
  for (let cid = ahead.pop(); cid !== undefined; cid = ahead.pop()) {
    const name = cid.toString()
    if (seen.has(name)) continue
    seen.add(name)
    const bytes = await block(cid)
    yield section(cid.bytes, bytes)
    if (cid.code === RAW || scope === 'block') continue
    for (const { Hash } of decode(bytes).Links.reverse()) ahead.push(Hash)
  }
}

/** The parts behind their length. */
function section(...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const head = varint.encodeTo(length, new Uint8Array(varint.encodingLength(length)))
  return Buffer.concat([head, ...parts])
}
