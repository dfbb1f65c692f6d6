import { digestOf } from '../dag/file-node.js'
import { openCar } from './car-indexes.js'
import { sectionsOf } from './car-sections.js'

/**
 * The SHA-256 digests of all blocks of a CAR, in its order. Reads only their heads.
 * @throws NetworkError NotRetrievable
 */
export async function digestsOfCar(file: string): Promise<Uint8Array[]> {
  const handle = await openCar(file)
  try {
    const digests: Uint8Array[] = []
    // A digest is a part of what was read ahead, which it would hold in memory.
    for await (const { cid } of sectionsOf(handle)) digests.push(Uint8Array.from(digestOf(cid)))
    return digests
  } finally {
    await handle.close()
  }
}
