import { open } from 'node:fs/promises'
import { decode } from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import { digestOf, notRetrievable, RAW } from '../dag/file-node.js'
import { CarBlocks } from './car-blocks.js'
import type { CarFile } from './car-file.js'
import { indexCar } from './car-indexes.js'

/**
 * One digest can belong to a node and to a file with the same bytes: these are two blocks, and only the node has links.
 */
const RAW_SEEN = 1
const NODE_SEEN = 2

/** Rules for a DAG that others made. */
export interface CopyRules {
  /** Throws for a block that must not be there. */
  check(cid: CID, block: Uint8Array): void
  /** Most links that wait to be followed: what they take in memory. */
  readonly mostAhead: number
}

/**
 * Copies the DAG beneath `root` from one CAR to another in the order of `ipfs dag export`: depth first, each node
 * before what it links to, links in the order of the node, each block once. Every packer that uses this order produces
 * the same CAR for the same DAG, and so the same piece CID: https://ipld.io/specs/transport/car/carv1/#determinism
 * Holds up to 51 bytes per block of the CAR, one block, and the links of the nodes above it.
 * @throws the signal's reason; NetworkError NotRetrievable when a block is missing or damaged
 */
export async function copyInOrder(
  from: string,
  root: CID,
  to: CarFile,
  signal?: AbortSignal,
  rules?: CopyRules,
): Promise<void> {
  const handle = await open(from, 'r')
  try {
    const index = await indexCar(handle)
    const blocks = new CarBlocks(handle, index, signal)
    /** The remaining links of each level, the next one last. */
    const ahead: CID[][] = [[root]]
    let waiting = 1
    for (let level = ahead.at(-1); level !== undefined; level = ahead.at(-1)) {
      const cid = level.pop()
      if (cid === undefined) {
        ahead.pop()
        continue
      }
      waiting--
      // The index knows only a prefix of the digest: a block with the same prefix must not be taken for this one.
      await blocks.mustHave(cid)
      if (!index.mark(digestOf(cid), cid.code === RAW ? RAW_SEEN : NODE_SEEN)) continue
      const block = await blocks.get(cid)
      rules?.check(cid, block)
      await to.put(cid, block)
      if (cid.code === RAW) continue
      const links = decode(block).Links.map(({ Hash }) => Hash)
      waiting += links.length
      if (rules !== undefined && waiting > rules.mostAhead)
        throw notRetrievable(`The DAG of ${root} has too many links.`)
      ahead.push(links.reverse())
    }
  } finally {
    await handle.close()
  }
}
