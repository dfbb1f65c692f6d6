import type { IncomingMessage } from 'node:http'

/** Why a body was not read. */
export type BodyFault = 'too large' | 'too slow' | 'broken off'

/**
 * The whole body of a request.
 * @param maxBytes more is not read
 * @param idleMs so long may nothing arrive
 */
export function readBody(incoming: IncomingMessage, maxBytes: number, idleMs: number): Promise<Buffer | BodyFault> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) return Promise.resolve('too large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    const idle = setTimeout(() => end('too slow'), idleMs)
    const end = (result: Buffer | BodyFault) => {
      clearTimeout(idle)
      incoming.off('data', take).off('end', done).off('close', gone).off('error', gone)
      if (!(result instanceof Buffer)) incoming.pause()
      resolve(result)
    }
    const take = (chunk: Buffer) => {
      idle.refresh()
      chunks.push(chunk)
      length += chunk.length
      if (length > maxBytes) end('too large')
    }
    const done = () => end(Buffer.concat(chunks))
    const gone = () => end('broken off')
    incoming.on('data', take).on('end', done).on('close', gone).on('error', gone)
  })
}
