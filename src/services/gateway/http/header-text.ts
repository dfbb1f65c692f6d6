import { GatewayError } from '../errors.js'

/** Bytes that a header value may contain: HTAB, SP and all visible ones (RFC 9110, 5.5). Each character is one byte. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Encodes a text as a header value: its UTF-8 bytes, one character each. Throws GatewayError InvalidHeader when a
 * header cannot carry it.
 */
export function headerText(name: string, text: string): string {
  const value = Buffer.from(text).toString('latin1')
  if (!FIELD_VALUE.test(value)) throw new GatewayError('InvalidHeader', { value: name })
  return value
}
