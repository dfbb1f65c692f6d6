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
 * The lines after the first one, RFC 9110 sections 5.1 and 5.5. Rejects white space before the colon and folded lines,
 * as RFC 9112 section 5 demands.
 */
const FIELDS = /^(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*$/

/**
 * Repeated fields of which only the first counts, as in node:http
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#messageheaders).
 */
const ONCE = new Set(['age', 'content-type', 'etag', 'expires', 'last-modified', 'location', 'retry-after', 'server'])

/** Has no members that a field could be taken for. An object that `Object.create(null)` makes is a slow hash table. */
class Fields {}
Object.setPrototypeOf(Fields.prototype, null)
Reflect.deleteProperty(Fields.prototype, 'constructor')

/**
 * Parses the head of an answer.
 * @param text one character per byte, without the final empty line
 * @throws S3Error InternalError when the answer is not HTTP/1
 */
export function parseHead(text: string): ResponseHead {
  const first = endOfLine(text, 0)
  const status = STATUS_LINE.exec(text.slice(0, first))
  if (!status) throw nonsense('does not answer in HTTP/1.1')
  if (!FIELDS.test(text.slice(first))) throw nonsense('answered with a broken header')
  const headers = new Fields() as IncomingHttpHeaders
  for (let at = first + 2; at < text.length; ) {
    const end = endOfLine(text, at)
    const colon = text.indexOf(':', at)
    addField(headers, text.slice(at, colon).toLowerCase(), fieldValue(text, colon + 1, end))
    at = end + 2
  }
  return {
    status: Number(status[2]),
    headers,
    persistent: status[1] === '1' && !/\bclose\b/i.test(headers.connection ?? ''),
  }
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\r\n', from)
  return end < 0 ? text.length : end
}

/** `trim` would cut more than white space: the last byte of a character in UTF-8 can be one of Unicode's spaces. */
function fieldValue(text: string, from: number, to: number): string {
  let first = from
  let end = to
  while (first < end && isBlank(text.charCodeAt(first))) first++
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(first, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function addField(headers: IncomingHttpHeaders, name: string, value: string): void {
  const known = headers[name]
  if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value]
  else if (known === undefined) headers[name] = value
  else if (name === 'content-length') {
    if (known !== value) throw nonsense('answered with two lengths')
  } else if (!ONCE.has(name)) headers[name] = `${known}, ${value}`
}
