import { createWriteStream } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CID } from 'multiformats/cid'
import { carFileOf } from './car/car-in-order.js'
import { openCar } from './car/car-indexes.js'
import { rootsOf } from './car/car-sections.js'
import { copyInOrder } from './car/ordered-car.js'
import { requireNames } from './dag/entry-names.js'
import { DAG_PB, digestOf, notRetrievable } from './dag/file-node.js'
import { readNode } from './dag/unixfs-node.js'
import type { PackedContent } from './pack-content.js'

/** Some 60 MiB of links. Directories of a million entries have fewer, because their shards have 256. */
const MOST_AHEAD = 200_000

/**
 * Takes a directory from a CAR that a client made: one root, which is a directory of UnixFS, and all that it links to.
 * Each block is hashed, and what the root does not lead to is left out, so that a DAG has the same CAR from every
 * client. The content is this CAR.
 * @param target path of the CAR: replaced if it exists, durable when packing resolves, removed when it rejects
 * @throws NetworkError NotRetrievable for anything else
 */
export async function packDirectory(
  content: AsyncIterable<Uint8Array>,
  target: string,
  signal?: AbortSignal,
): Promise<PackedContent> {
  const received = `${resolve(target)}.received`
  try {
    await pipeline(Readable.from(content, { objectMode: false }), createWriteStream(received, { mode: 0o600 }), {
      ...(signal && { signal }),
    })
    const root = await rootOf(received)
    const size = await carFileOf(resolve(target), 0, async (car) => {
      const check = (cid: CID, block: Uint8Array): void => checkNode(cid, block, cid.equals(root))
      await copyInOrder(received, root, car, signal, { check, mostAhead: MOST_AHEAD })
      return car.finish(root)
    })
    return { cid: root.toString(), size, carSize: size }
  } finally {
    await unlink(received).catch(() => {})
  }
}

async function rootOf(file: string): Promise<CID> {
  const handle = await openCar(file)
  try {
    const [root, ...others] = await rootsOf(handle)
    if (root === undefined || others.length > 0) throw notRetrievable('The CAR must have one root.')
    digestOf(root)
    if (root.code !== DAG_PB) throw notRetrievable('The root of the CAR must be a directory.')
    return root.version === 0 ? root : CID.createV0(root.multihash as never)
  } finally {
    await handle.close()
  }
}

function checkNode(cid: CID, block: Uint8Array, isRoot: boolean): void {
  const node = readNode(cid, block)
  const isDirectory = node.kind === 'directory' || node.kind === 'shard'
  if (isRoot && !isDirectory) throw notRetrievable('The root of the CAR must be a directory.')
  if (isDirectory) requireNames(cid, node.links, node.kind === 'shard')
}
