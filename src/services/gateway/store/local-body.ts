import { read } from 'node:fs'
import type { Blobs } from './blobs.js'
import type { Holds } from './holds.js'
import type { Objects } from './objects.js'

/** A body that lies here, open: it can be read to its end also when its object is overwritten or removed meanwhile. */
export interface LocalBody {
  /** Up to `length` bytes; fewer only at the end, where there are none. */
  read(position: number, length: number): Promise<Buffer>
  close(): Promise<void>
}

interface Tools {
  readonly objects: Objects
  readonly blobs: Blobs
  readonly holds: Holds
}

/** Undefined when the body of this generation is not here, or not all of it yet. */
export async function openLocalBody(
  { objects, blobs, holds }: Tools,
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
    // The file of a body that is being brought back, or that a crash has cut short in that, has its name already: it counts once the index says so.
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
