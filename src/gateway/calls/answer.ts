import type { IncomingHttpHeaders } from 'node:http'
import type { BrandNames } from '../brand.js'
import type { UpstreamFailure } from '../errors.js'
import { single } from '../object-facts.js'
import type { RestResponse } from '../transport/response.js'

/** Most bytes of an answer that are read. */
const MAX_TEXT_BYTES = 16 * 1024

/** A complete small answer: to an upload, or in place of an object's bytes. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** At most 16 KiB. */
  readonly text: string
  /** It came before the whole body of the request had left: an acknowledgement of such a body is worth nothing. */
  readonly early?: boolean
}

/** Converts a failed answer to the form that `translate` takes. */
export function httpFailure(names: BrandNames, answer: Answer): UpstreamFailure & { kind: 'http' } {
  const headerCode = single(answer.headers[names.header('error-code')])
  const fence = numberOf(single(answer.headers[names.header('fence')]))
  return { kind: 'http', status: answer.status, text: answer.text, headerCode, fence }
}

function numberOf(text: string | undefined): number | undefined {
  const number = Number(text)
  return text !== undefined && Number.isSafeInteger(number) ? number : undefined
}

/**
 * Reads the rest of a small answer. Truncates a longer one and closes its connection. Never fails: returns the bytes
 * that arrived.
 */
export function readAnswer(response: RestResponse, idleMs: number): Promise<Answer> {
  const { status, headers } = response
  const whole = response.whole()
  if (whole) return Promise.resolve({ status, headers, text: whole.toString('utf8', 0, MAX_TEXT_BYTES) })
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(() => response.destroy(), idleMs)
    const finish = () => {
      clearTimeout(timer)
      const text = Buffer.concat(chunks).subarray(0, MAX_TEXT_BYTES).toString('utf8')
      resolve({ status, headers, text })
    }
    response.read(
      {
        data(chunk, done) {
          chunks.push(Buffer.from(chunk))
          size += chunk.length
          done()
          if (size > MAX_TEXT_BYTES) response.destroy()
        },
        end: finish,
        failed: finish,
      },
      0,
    )
  })
}
