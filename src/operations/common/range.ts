import type { ByteRange } from '../../gateway/gateway.js'

/**
 * One byte range of a Range header. Undefined where the whole object is the answer: no header, other units, several ranges (S3 serves none of those),
 * or one that RFC 9110 section 14.1.1 calls invalid.
 */
export function parseRange(header: string | undefined): ByteRange | undefined {
  // No two parts that may both be white space stand side by side: the time grows with the length alone.
  const found = /^\s*bytes\s*=\s*(?:(\d+)\s*)?-\s*(?:(\d+)\s*)?$/i.exec(header ?? '')
  if (!found) return undefined
  const [, first, last] = found
  if (first === undefined) return last === undefined ? undefined : { suffix: position(last) }
  if (last === undefined) return { first: position(first) }
  return BigInt(first) <= BigInt(last) ? { first: position(first), last: position(last) } : undefined
}

/** A position beyond all numbers that are exact lies behind the end of any object, and so does the greatest of those. */
function position(digits: string): number {
  return Math.min(Number(digits), Number.MAX_SAFE_INTEGER)
}
