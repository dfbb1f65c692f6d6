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
        size += chunk.length
        if (size > max) {
          resolve(undefined)
          stop()
          return
        }
        chunks.push(Buffer.from(chunk))
        timer.refresh()
        done()
      },
      end() {
        clearTimeout(timer)
        resolve(Buffer.concat(chunks, size))
      },
      failed(error: unknown) {
        clearTimeout(timer)
        reject(error)
      },
    }
    response.read(receiver, 1)
  })
}
