import { open, unlink } from 'node:fs/promises'
import { decode } from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import { type BlockSink, type DagNode, digestOf, notRetrievable, RAW } from '../dag/unixfs.js'
import { CarFile, type CidVersion } from './car-file.js'
import { CarBlocks, indexCar } from './car-indexes.js'

/**
 * Writes the CAR of a DAG, durably, in the order of `copyInOrder`, whose memory it takes. A node can be created only
 * after the nodes that it links to, but precedes them in the CAR. The blocks are therefore collected in a file beside
 * the target first, and both files together temporarily need twice the space of the CAR. Leaves nothing when it
 * rejects.
 * @param target path of the CAR: replaced if it exists
 * @param build puts the blocks, and resolves with the root
 * @param version of the root's CID
 */
export async function carInOrder(
  target: string,
  build: (blocks: BlockSink) => Promise<DagNode>,
  version: CidVersion,
  signal?: AbortSignal,
): Promise<{ readonly root: CID; readonly size: number }> {
  const gathered = `${target}.blocks`
  signal?.throwIfAborted()
  const { cid: root } = await carFileOf(gathered, version, async (blocks) => {
    const node = await build(blocks)
    await blocks.end(node.cid)
    return node
  })
  try {
    const size = await carFileOf(target, version, async (car) => {
      await copyInOrder(gathered, root, car, signal)
      return car.finish(root)
    })
    return { root, size }
  } finally {
    await unlink(gathered)
  }
}

/**
 * Writes a CAR, which is removed when `write` rejects.
 * @param version of the root's CID
 */
export async function carFileOf<T>(
  target: string,
  version: CidVersion,
  write: (car: CarFile) => Promise<T>,
): Promise<T> {
  const car = await CarFile.create(target, version)
  try {
    return await write(car)
  } catch (error) {
    await car.discard()
    throw error
  }
}

/**
 * One digest can belong to a node and to a file with the same bytes: these are two blocks, and only the node has links.
 */
const RAW_SEEN = 1
const NODE_SEEN = 2

/** Rules for a DAG that others made. */
interface CopyRules {
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
