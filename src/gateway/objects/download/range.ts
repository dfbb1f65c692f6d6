import { S3Error } from '../../../common/errors/s3-error.js'
import type { ByteRange } from '../../gateway.js'

/** Byte positions. `last` is `first - 1` when the span is empty. */
export interface Span {
  readonly first: number
  readonly last: number
}

/**
 * Resolves a range against an object of `size` bytes; without a range, the span is the whole object. Throws
 * InvalidRange when the range selects no byte (RFC 9110 section 14.1.2).
 */
export function resolveRange(range: ByteRange | undefined, size: number): Span {
  if (range === undefined) return { first: 0, last: size - 1 }
  const first = 'suffix' in range ? Math.max(0, size - range.suffix) : range.first
  const last = 'suffix' in range ? size - 1 : Math.min(range.last ?? size - 1, size - 1)
  if (first > last) throw invalidRange(size)
  return { first, last }
}

export function rangeHeader(range: ByteRange): string {
  return 'suffix' in range ? `bytes=-${range.suffix}` : `bytes=${range.first}-${range.last ?? ''}`
}

/** Parses `bytes 0-9/100`. Returns undefined for anything else. */
export function parseContentRange(value: string | undefined): (Span & { size: number }) | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(value ?? '')
  if (!match) return undefined
  return { first: Number(match[1]), last: Number(match[2]), size: Number(match[3]) }
}

export function invalidRange(size: number): S3Error {
  return new S3Error('InvalidRange', {
    fields: { ActualObjectSize: size },
    headers: { 'content-range': `bytes */${size}` },
  })
}
