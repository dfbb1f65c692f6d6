import { S3Error } from '../../common/errors/s3-error.js'

/** ASCII without an escape. */
const PLAIN = /^[\x20-\x24\x26-\x7e]*$/

/**
 * Percent-decodes a path once, without normalising it. Bytes that a client left unencoded arrive as latin-1 characters.
 * Throws InvalidURI.
 */
export function decodePath(raw: string): string {
  if (PLAIN.test(raw)) return raw
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the class is "not ASCII"
  const escaped = raw.replace(/[^\x00-\x7f]/g, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  if (!escaped.includes('%')) return escaped
  try {
    return decodeURIComponent(escaped)
  } catch (cause) {
    throw new S3Error('InvalidURI', { message: 'The request path is not valid percent-encoded UTF-8.', cause })
  }
}
