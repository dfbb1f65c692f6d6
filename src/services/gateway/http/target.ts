import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../errors.js'

/** Splits `text` at its first `/`: `b/a/c` is `b` and `a/c`. */
export function splitFirst(text: string): [first: string, rest: string] {
  const at = text.indexOf('/')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

const ESCAPES = /%([0-9A-Fa-f]{2})/g
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/

/** Percent-decodes a text once. Throws GatewayError when the bytes are not UTF-8. */
export function decode(raw: string): Buffer {
  if (BROKEN_ESCAPE.test(raw)) throw new GatewayError('InvalidURI')
  const bytes = Buffer.from(
    raw.replace(ESCAPES, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    'latin1',
  )
  if (!isUtf8(bytes)) throw new GatewayError('InvalidURI')
  return bytes
}

/** True when a path element is `.` or `..`, which MinIO refuses before routing (cmd/generic-handlers.go). */
export function hasBadComponents(path: string): boolean {
  if (!path.includes('.') && !/%2e/i.test(path)) return false
  return path
    .replace(/%2e/gi, '.')
    .replace(/%2f/gi, '/')
    .split('/')
    .some((element) => element === '.' || element === '..')
}
