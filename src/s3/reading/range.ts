import type { ByteRange } from '../../gateway/gateway.js'

/**
 * Parses a single byte range of a Range header. Returns undefined if the answer is the whole object: no header, other
 * units, several ranges (S3 does not serve them), or a range that RFC 9110 section 14.1.1 calls invalid.
 */
export function parseRange(header: string | undefined): ByteRange | undefined {
  // No two adjacent parts can both match white space, so matching takes linear time.
  const found = /^\s*bytes\s*=\s*(?:(\d+)\s*)?-\s*(?:(\d+)\s*)?$/i.exec(header ?? '')
  if (!found) return undefined
  const [, first, last] = found
  if (first === undefined) return last === undefined ? undefined : { suffix: position(last) }
  if (last === undefined) return { first: position(first) }
  return BigInt(first) <= BigInt(last) ? { first: position(first), last: position(last) } : undefined
}

/** Caps positions at the largest exact number, which lies beyond the end of any object. */
function position(digits: string): number {
  return Math.min(Number(digits), Number.MAX_SAFE_INTEGER)
}
