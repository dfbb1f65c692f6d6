import type { FileHandle } from 'node:fs/promises'
import { S3Error } from '../../common/errors/s3-error.js'
import { stagingFailed } from '../errors.js'

const READ_BYTES = 512 * 1024

/**
 * Sends a file of `size` bytes to `sink` in reads of 512 KiB, each after the sink has taken the last one. The sink may
 * keep the chunks. Throws S3Error InternalError when the file has another length than `size`. Errors of the sink pass
 * unchanged.
 */
export async function readFile(
  handle: FileHandle,
  size: number,
  sink: (chunk: Buffer) => void | Promise<void>,
): Promise<void> {
  // Checked first, so that a file of the wrong length sends nothing.
  const found = (await handle.stat()).size
  if (found !== size) throw wrongLength(size, found)
  let position = 0
  while (position < size) {
    const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, size - position))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position).catch((error: unknown) => {
      throw stagingFailed(error)
    })
    if (bytesRead === 0) throw wrongLength(size, position)
    position += bytesRead
    const pressure = sink(buffer.subarray(0, bytesRead))
    if (pressure) await pressure
  }
}

function wrongLength(expected: number, found: number): S3Error {
  return new S3Error('InternalError', {
    message: 'The server has lost bytes of an upload. Send them again.',
    cause: new Error(`A staged file should hold ${expected} bytes and holds ${found}`),
  })
}
