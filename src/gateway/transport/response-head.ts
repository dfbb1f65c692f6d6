import type { IncomingHttpHeaders } from 'node:http'
import { nonsense } from '../errors.js'

export interface ResponseHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** True for HTTP/1.1 unless the answer announces the end of the connection. */
  readonly persistent: boolean
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
/**
 * RFC 9110 sections 5.1 and 5.5. Rejects white space before the colon and folded lines, as RFC 9112 section 5 demands.
 */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/

/**
 * Repeated fields of which only the first counts, as in node:http
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#messageheaders).
 */
const ONCE = new Set(['age', 'content-type', 'etag', 'expires', 'last-modified', 'location', 'retry-after', 'server'])

/**
 * Parses the head of an answer.
 * @param text one character per byte, without the final empty line
 * @throws S3Error InternalError when the answer is not HTTP/1
 */
export function parseHead(text: string): ResponseHead {
  const lines = text.split('\r\n')
  const status = STATUS_LINE.exec(lines[0] as string)
  if (!status) throw nonsense('does not answer in HTTP/1.1')
  const headers: IncomingHttpHeaders = Object.create(null)
  for (let i = 1; i < lines.length; i++) {
    const field = FIELD.exec(lines[i] as string)
    if (!field) throw nonsense('answered with a broken header')
    addField(headers, (field[1] as string).toLowerCase(), (field[2] as string).trimEnd())
  }
  return {
    status: Number(status[2]),
    headers,
    persistent: status[1] === '1' && !/\bclose\b/i.test(headers.connection ?? ''),
  }
}

function addField(headers: IncomingHttpHeaders, name: string, value: string): void {
  const known = headers[name]
  if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value]
  else if (known === undefined) headers[name] = value
  else if (name === 'content-length') {
    if (known !== value) throw nonsense('answered with two lengths')
  } else if (!ONCE.has(name)) headers[name] = `${known}, ${value}`
}
