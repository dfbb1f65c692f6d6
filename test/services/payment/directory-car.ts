import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { carInOrder } from '../../../src/services/network/pack/car/car-in-order.js'
import { DagTree } from '../../../src/services/network/pack/dag/dag-names.js'
import { type DagNode, putFile } from '../../../src/services/network/pack/dag/unixfs.js'
import { temporaryFolder } from '../../support/content/folders.js'

export const CAR_TYPE = 'application/vnd.ipld.car'

/** A CAR of a directory with these files, as `ipfs dag export` writes it; those of one directory come together. */
export async function directoryCar(
  t: Test,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<{ readonly car: Buffer<ArrayBuffer>; readonly cid: string }> {
  const target = join(temporaryFolder(t), 'directory.car')
  const nodes = new Map<string, DagNode>()
  const { root } = await carInOrder(
    target,
    async (blocks) => {
      const tree = new DagTree(blocks)
      for (const [path, content] of Object.entries(files)) {
        const bytes = Buffer.from(content)
        const key = bytes.toString('latin1')
        const node = nodes.get(key) ?? (await putFile(one(bytes), blocks, 'unixfs-v0-2015'))
        nodes.set(key, node)
        await tree.add(path.split('/'), node)
      }
      return tree.close()
    },
    1,
  )
  return { car: await readFile(target), cid: root.toString() }
}

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  if (bytes.length > 0) yield bytes
}
