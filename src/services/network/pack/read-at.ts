import type { FileHandle } from 'node:fs/promises'
import { NetworkError } from '../network.js'

/**
 * Reads the bytes at this offset; fewer only at the end of the file.
 * @throws NetworkError NotRetrievable when the disk fails
 */
export async function readAt(handle: FileHandle, offset: number, count: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(count)
  let length = 0
  while (length < count) {
    const { bytesRead } = await read(handle, buffer, length, offset + length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}

async function read(handle: FileHandle, buffer: Buffer, at: number, position: number): Promise<{ bytesRead: number }> {
  try {
    return await handle.read(buffer, at, buffer.length - at, position)
  } catch (cause) {
    throw new NetworkError('NotRetrievable', 'The CAR of the deal cannot be read.', { cause })
  }
}
