import { nonsense } from '../errors.js'
import { ChunkedFraming } from './chunked.js'
import type { ResponseHead } from './response-head.js'

/** Determines where a body ends: RFC 9112 section 6.3. */
export interface Framing {
  /**
   * Extracts the bytes of the body from the received bytes, as views where they are contiguous. Throws S3Error when
   * they do not match the announced framing.
   */
  decode(bytes: Buffer): Buffer
  readonly complete: boolean
  /** True when more bytes arrived than belong to the body. */
  readonly surplus: boolean
  /** Missing bytes of the body; undefined when unknown. */
  readonly left: number | undefined
  /** True when the body ends with the connection. */
  readonly endsWithConnection: boolean
}

/** Throws S3Error for invalid lengths. */
export function framingOf(method: string, { status, headers }: ResponseHead): Framing {
  if (method === 'HEAD' || status === 204 || status === 304) return new FixedFraming(0)
  const length = headers['content-length']
  const coding = headers['transfer-encoding']
  if (coding !== undefined) {
    // Two lengths in one answer allow response smuggling; this client requests no other transfer coding.
    if (length !== undefined || !/^chunked$/i.test(coding)) throw nonsense('answered with a transfer coding of its own')
    return new ChunkedFraming()
  }
  if (length === undefined) return openEnded
  const bytes = /^\d{1,16}$/.test(length) ? Number(length) : Number.NaN
  if (!Number.isSafeInteger(bytes)) throw nonsense('answered with an invalid length')
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
