import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { LateDocument, RelayBody, Reply, ReplyHeaders } from '../../api/request.js'

/** Headers about the connection, which only the server sets. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Throws TypeError, naming the problem, for a reply that cannot be sent. Plugins are not always compiled against our
 * types.
 */
export function checkReply(reply: unknown): asserts reply is Reply {
  if (typeof reply !== 'object' || reply === null)
    throw new TypeError(`it answered with ${kindOf(reply)}, which is not a Reply`)
  const { status, headers, body } = reply as Record<keyof Reply, unknown>
  if (!Number.isInteger(status) || Number(status) < 200 || Number(status) > 599)
    throw new TypeError(`it answered with the status ${String(status)}, which is not between 200 and 599`)
  const length = checkBody(body)
  checkHeaders(headers, bodiless(Number(status)) ? undefined : length)
}

function bodiless(status: number): boolean {
  return status === 204 || status === 304
}

function checkBody(body: unknown): number | undefined {
  if (body === undefined) return undefined
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (body instanceof Uint8Array) return body.length
  if (isObject(body) && isObject(body.download)) {
    const { lend, discard } = body.download as Partial<RelayBody['download']>
    if (typeof lend === 'function' && typeof discard === 'function') return undefined
  }
  if (isObject(body) && isObject(body.late) && typeof body.late.then === 'function') return undefined
  throw new TypeError(`it answered with a body that is ${kindOf(body)}, not text, bytes, a download or a late document`)
}

/** The result of a late body, which plugins may send as the text alone. Throws TypeError as `checkReply`. */
export function checkLate(made: unknown): LateDocument {
  const { document, headers = {} } = (Object(made) === made ? made : { document: made }) as Partial<LateDocument>
  if (typeof document !== 'string')
    throw new TypeError(`it sent a late document that is a ${typeof document}, not a string`)
  checkHeaders(headers, undefined)
  return { document, headers }
}

/**
 * Throws TypeError as `checkReply`.
 * @param length of the body, bytes, if known
 */
export function checkHeaders(headers: unknown, length: number | undefined): asserts headers is ReplyHeaders {
  if (!isObject(headers)) throw new TypeError(`it answered with headers that are ${kindOf(headers)}`)
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue
    validateHeaderName(name)
    if (typeof value !== 'string' && typeof value !== 'number')
      throw new TypeError(`it answered with the header ${name}, whose value is ${kindOf(value)}`)
    validateHeaderValue(name, String(value))
    const lower = name.toLowerCase()
    if (HOP_BY_HOP.has(lower)) throw new TypeError(`it answered with the header ${name}, which only the server sets`)
    if (lower === 'content-length' && length !== undefined && Number(value) !== length)
      throw new TypeError(`it answered with the content-length ${value} but a body of ${length} bytes`)
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}
