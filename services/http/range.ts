/** First and last byte position. */
export interface Span {
  readonly first: number
  readonly last: number
}

const SINGLE = /^bytes=(\d*)-(\d*)$/i

/**
 * Parses a Range header (RFC 9110, 14.2) for a body of `size` bytes. Returns undefined when the whole body is to be
 * sent: without a range, with several ranges, or when the header is not understood. 'unsatisfiable' stands for 416.
 */
export function parseRange(header: string | undefined, size: number): Span | 'unsatisfiable' | undefined {
  const found = header === undefined ? null : SINGLE.exec(header.trim())
  if (found === null) return undefined
  const [, from = '', to = ''] = found
  if (from === '') {
    if (to === '') return undefined
    const suffix = Math.min(Number(to), size)
    return suffix === 0 ? 'unsatisfiable' : { first: size - suffix, last: size - 1 }
  }
  const first = Number(from)
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== '' && Number(to) < first) return undefined
  return first >= size ? 'unsatisfiable' : { first, last }
}
