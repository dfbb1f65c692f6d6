import { read } from 'node:fs'
import type { GatewayContext } from '../context.js'

/** An open local body. It can be read to its end even when its object is overwritten or removed meanwhile. */
export interface LocalBody {
  /** Reads up to `length` bytes; fewer only at the end of the body, and none after it. */
  read(position: number, length: number): Promise<Buffer>
  close(): Promise<void>
}

/** Returns undefined when the body of this generation is not complete on this disk. */
export async function openLocalBody(
  { objects, blobs, holds }: Pick<GatewayContext, 'objects' | 'blobs' | 'holds'>,
  generation: string,
): Promise<LocalBody | undefined> {
  const inline = objects.inlineBody(generation)
  if (inline !== undefined) {
    return {
      read: async (position, length) => inline.subarray(position, position + length),
      close: async () => {},
    }
  }
  try {
    const handle = await blobs.open(generation)
    // The file of a body that is being restored, or whose restore a crash interrupted, has its final name already. It
    // counts once the index names it.
    if (!objects.hasFile(generation) && !holds.isRetained(generation)) {
      await handle.close()
      return undefined
    }
    return { read: (position, length) => readAt(handle.fd, position, length), close: () => handle.close() }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function readAt(fd: number, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length)
  let filled = 0
  while (filled < length) {
    const bytes = await readInto(fd, buffer, filled, position + filled)
    if (bytes === 0) break
    filled += bytes
  }
  return buffer.subarray(0, filled)
}

function readInto(fd: number, buffer: Buffer, offset: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, offset, buffer.length - offset, position, (error, bytes) =>
      error === null ? resolve(bytes) : reject(error),
    )
  })
}
