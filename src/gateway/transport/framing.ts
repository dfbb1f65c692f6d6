import { nonsense } from '../errors.js'
import { ChunkedFraming } from './chunked.js'
import type { ResponseHead } from './response-head.js'

/** How the end of a body is known: RFC 9112 section 6.3. */
export interface Framing {
  /** The body's own bytes among those that arrived, as views of them where they are in one piece. Throws S3Error when they cannot be what was announced. */
  decode(bytes: Buffer): Buffer
  readonly complete: boolean
  /** More arrived than belongs to the body: nobody can say what it is. */
  readonly surplus: boolean
  /** Bytes of the body still to come; undefined when that is not known. */
  readonly left: number | undefined
  /** The body ends where the connection does. */
  readonly endsWithConnection: boolean
}

/** Throws S3Error for lengths that are none. */
export function framingOf(method: string, { status, headers }: ResponseHead): Framing {
  if (method === 'HEAD' || status === 204 || status === 304) return new FixedFraming(0)
  const length = headers['content-length']
  const coding = headers['transfer-encoding']
  if (coding !== undefined) {
    // Two lengths in one answer are how answers get smuggled; and we have asked for no other coding.
    if (length !== undefined || !/^chunked$/i.test(coding)) throw nonsense('answered with a transfer coding of its own')
    return new ChunkedFraming()
  }
  if (length === undefined) return openEnded
  const bytes = /^\d{1,16}$/.test(length) ? Number(length) : Number.NaN
  if (!Number.isSafeInteger(bytes)) throw nonsense('answered with a length that is none')
  return new FixedFraming(bytes)
}

class FixedFraming implements Framing {
  readonly endsWithConnection = false
  left: number
  surplus = false

  constructor(length: number) {
    this.left = length
  }

  get complete(): boolean {
    return this.left === 0
  }

  decode(bytes: Buffer): Buffer {
    const own = bytes.length > this.left ? bytes.subarray(0, this.left) : bytes
    this.left -= own.length
    this.surplus ||= own.length < bytes.length
    return own
  }
}

const openEnded: Framing = {
  decode: (bytes) => bytes,
  complete: false,
  surplus: false,
  left: undefined,
  endsWithConnection: true,
}
