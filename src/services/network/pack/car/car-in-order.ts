import { unlink } from 'node:fs/promises'
import type { CID } from 'multiformats/cid'
import type { BlockSink, DagNode } from '../dag/unixfs.js'
import { CarFile, type CidVersion } from './car-file.js'
import { copyInOrder } from './ordered-car.js'

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
