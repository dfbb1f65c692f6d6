import { S3Error } from '../../errors/s3-error.js'
import type { ByteRange } from '../../gateway/gateway.js'

/** The positions a range means in an object of this size. Throws InvalidRange when it lies outside. */
export function resolveRange(range: ByteRange, size: number): { first: number; last: number } {
  const first = 'suffix' in range ? Math.max(0, size - range.suffix) : range.first
  const last = 'suffix' in range ? size - 1 : Math.min(range.last ?? size - 1, size - 1)
  if (first < size && first <= last && !('suffix' in range && range.suffix === 0)) return { first, last }
  throw new S3Error('InvalidRange', {
    fields: { ActualObjectSize: size },
    headers: { 'content-range': `bytes */${size}` },
  })
}
