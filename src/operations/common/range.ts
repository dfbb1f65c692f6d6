import type { ByteRange } from '../../gateway/gateway.js'

/**
 * One byte range of a Range header. Undefined where the whole object is the answer: no header, other units, several ranges (S3 serves none of those),
 * or one that RFC 9110 section 14.1.1 calls invalid.
 */
export function parseRange(header: string | undefined): ByteRange | undefined {
  const found = /^\s*bytes\s*=\s*(\d{0,16})\s*-\s*(\d{0,16})\s*$/i.exec(header ?? '')
  if (!found) return undefined
  const [, first = '', last = ''] = found
  if (first === '') return last === '' ? undefined : { suffix: Number(last) }
  if (last === '') return { first: Number(first) }
  return Number(first) <= Number(last) ? { first: Number(first), last: Number(last) } : undefined
}
