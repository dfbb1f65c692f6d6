import { timedOut } from '../errors.js'
import type { RestResponse } from './response.js'

/**
 * Reads the body of an answer into memory. Resolves undefined for more than `max` bytes. Rejects with the error of the
 * connection, or when no byte arrives for `idleMs`.
 */
export function readAll(response: RestResponse, max: number, idleMs: number): Promise<Buffer | undefined> {
  const whole = response.whole()
  if (whole) return Promise.resolve(whole.length > max ? undefined : whole)
  return new Promise((resolve, reject) => {
    const { headers } = response
    const declared = headers['content-length'] === undefined ? max + 1 : Number(headers['content-length'])
    // In place, where the length is known: the pieces of a long answer are large garbage.
    const whole = declared <= max ? Buffer.allocUnsafeSlow(declared) : undefined
    const chunks: Buffer[] = []
    let size = 0
    const stop = () => {
      clearTimeout(timer)
      response.destroy()
    }
    const timer = setTimeout(() => {
      reject(timedOut('an answer'))
      stop()
    }, idleMs)
    const receiver = {
      data(chunk: Buffer, done: () => void) {
        if (whole) chunk.copy(whole, size)
        else chunks.push(Buffer.from(chunk))
        size += chunk.length
        if (size > max) {
          resolve(undefined)
          stop()
          return
        }
        timer.refresh()
        done()
      },
      end() {
        clearTimeout(timer)
        // An answer without a body may declare a length, and what it lacks was never written.
        resolve(whole?.subarray(0, size) ?? Buffer.concat(chunks, size))
      },
      failed(error: unknown) {
        clearTimeout(timer)
        reject(error)
      },
    }
    response.read(receiver, 0)
  })
}
