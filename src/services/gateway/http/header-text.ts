import { GatewayError } from '../errors.js'

/** Bytes that may stand in a header value: HTAB, SP and everything visible (RFC 9110, 5.5). One character for each byte. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** A text as a header value: its UTF-8 bytes, one character for each. Throws when a header cannot carry it. */
export function headerText(name: string, text: string): string {
  const value = Buffer.from(text).toString('latin1')
  if (!FIELD_VALUE.test(value)) throw new GatewayError('InvalidHeader', { value: name })
  return value
}
