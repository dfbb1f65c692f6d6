import { open } from 'node:fs/promises'
import { NetworkError } from '../../network.js'
import type { Car } from '../../packing.js'
import { rootsOf, sectionsOf } from './car-sections.js'

/**
 * Reads a file as a CAR: its one root, and the heads of all blocks, among which that of the root is. Does not hash the
 * blocks. Rejects with NetworkError DataRefused for any other file.
 */
export async function wholeCar(file: string, signal?: AbortSignal): Promise<Car> {
  const handle = await open(file, 'r')
  try {
    const [root, another] = await rootsOf(handle)
    if (root === undefined || another !== undefined) throw refusal('The CAR does not have one root.')
    let hasRoot = false
    for await (const { cid } of sectionsOf(handle)) {
      signal?.throwIfAborted()
      hasRoot ||= cid.equals(root)
    }
    if (!hasRoot) throw refusal('The CAR does not contain its root.')
    return { file, dataCid: root.toString(), size: (await handle.stat()).size }
  } catch (error) {
    throw error instanceof NetworkError ? refusal(error.message, error) : error
  } finally {
    await handle.close()
  }
}

function refusal(message: string, cause?: unknown): NetworkError {
  return new NetworkError('DataRefused', message, { cause })
}
