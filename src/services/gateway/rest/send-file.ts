import { read } from 'node:fs'
import type { ServerResponse } from 'node:http'

/** Bytes read per call. */
const CHUNK = 512 * 1024

/**
 * Sends bytes `first` to `last` of an open file and ends the response. Uses two buffers: one is filled while the other
 * is being sent, and neither is reused before the socket has taken it. Destroys the response, so that a partial body
 * does not look complete, when the file cannot be read or the client reads nothing for `idleMs`. Resolves when the file
 * is no longer needed.
 */
export async function sendFile(
  fd: number,
  first: number,
  last: number,
  response: ServerResponse,
  idleMs: number,
): Promise<void> {
  const size = Math.min(CHUNK, last - first + 1)
  const buffers = [Buffer.allocUnsafe(size), Buffer.allocUnsafe(size)] as const
  const idle = setTimeout(() => response.destroy(), idleMs)
  let sent: Promise<void> = Promise.resolve()
  try {
    for (let position = first, turn: 0 | 1 = 0; position <= last; turn = turn === 0 ? 1 : 0) {
      const buffer = buffers[turn]
      const bytes = await readAt(fd, buffer, Math.min(buffer.length, last + 1 - position), position)
      position += bytes
      // The other buffer must be sent before it is filled again. This also bounds the socket's queue to one write.
      await sent
      idle.refresh()
      sent = write(response, buffer.subarray(0, bytes))
      // The next iteration awaits it; a rejection in between must not be unhandled.
      sent.catch(() => {})
    }
    await sent
    response.end()
  } catch {
    response.destroy()
  } finally {
    clearTimeout(idle)
  }
}

function readAt(fd: number, buffer: Buffer, length: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, length, position, (error, bytes) => {
      if (error !== null) reject(error)
      else if (bytes === 0) reject(new Error('The file is shorter than the index says.'))
      else resolve(bytes)
    })
  })
}

/** Resolves when the socket has taken the whole chunk; rejects when the client has disconnected. */
function write(response: ServerResponse, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.destroyed) return reject(new Error('The client has disconnected.'))
    const gone = (): void => reject(new Error('The client has disconnected.'))
    response.once('close', gone)
    response.write(chunk, (error) => {
      response.off('close', gone)
      if (error) reject(error)
      else resolve()
    })
  })
}
