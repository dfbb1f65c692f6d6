import { resolve } from 'node:path'
import { abortable } from './abortable.js'
import { carInOrder } from './car/car-in-order.js'
import { putFile } from './dag/unixfs.js'

/** One content on the disk, as `ipfs add` stores it. */
export interface PackedContent {
  /** CIDv0: `Qm...` */
  readonly cid: string
  /** Bytes of the content. */
  readonly size: number
  /** Bytes of the CAR. */
  readonly carSize: number
}

/**
 * Packs one content of unknown length into a CAR in the profile `unixfs-v0-2015`, so that its CID is that of `ipfs
 * add`.
 * @param target path of the CAR: replaced if it exists, durable when packing resolves, removed when it rejects
 */
export async function packContent(
  content: AsyncIterable<Uint8Array>,
  target: string,
  signal?: AbortSignal,
): Promise<PackedContent> {
  let size = 0
  async function* counted(): AsyncIterable<Uint8Array> {
    for await (const chunk of abortable(content, signal)) {
      size += chunk.length
      yield chunk
    }
  }
  const car = await carInOrder(resolve(target), (blocks) => putFile(counted(), blocks, 'unixfs-v0-2015'), 0, signal)
  return { cid: car.root.toString(), size, carSize: car.size }
}
