import { isUtf8 } from 'node:buffer'

// Encoded words of RFC 2047, by which S3 answers user metadata that is not in ASCII:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html#UserMetadata

const PRINTABLE = /^[\t\x20-\x7e]*$/

const WORD = /=\?([^\s?*]{1,40})(?:\*[^\s?]{0,40})?\?([BbQq])\?([^\s?]*)\?=/
/** One word, or several with white space between them, which is not a part of the text (RFC 2047 section 6.2). */
const WORDS = new RegExp(`${WORD.source}(?:[ \\t]+${WORD.source})*`, 'g')

/**
 * Returns the mail-safe form of the value of a header: printable ASCII as it is, any other text as an encoded word.
 * Encoded words in the value are decoded first. Those that cannot be decoded stay as they are.
 * @param bytes one character for each byte. They are read as UTF-8 or, where they are not valid, as Latin-1
 */
export function mailSafe(bytes: string): string {
  if (PRINTABLE.test(bytes) && !bytes.includes('=?')) return bytes
  const raw = Buffer.from(bytes, 'latin1')
  const text = isUtf8(raw) ? raw.toString('utf8') : bytes
  const decoded = decodeWords(text)
  // A text that looks like an encoded word must not be taken for one.
  return PRINTABLE.test(decoded) && (decoded === text || !WORD.test(decoded)) ? decoded : encodeWord(decoded)
}

/**
 * Returns the text as one encoded word in UTF-8. As S3 does, the form is Q where each character can be printed, so that
 * most of the text can be read, and B elsewhere.
 */
export function encodeWord(text: string): string {
  const bytes = Buffer.from(text, 'utf8')
  if (/[\p{C}\ufffd]/u.test(text)) return `=?UTF-8?B?${bytes.toString('base64')}?=`
  const quoted = bytes
    .toString('latin1')
    .replace(/[^!-<>@-^`-~]/g, (byte) => (byte === ' ' ? '_' : `=${hexOf(byte.charCodeAt(0))}`))
  return `=?UTF-8?Q?${quoted}?=`
}

function hexOf(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0')
}

function decodeWords(text: string): string {
  return text.replace(WORDS, (run) => decodeRun(run.split(/[ \t]+/)) ?? run)
}

/** The text of adjacent words. A character may be split between words of the same charset. */
function decodeRun(words: readonly string[]): string | undefined {
  const pieces: { readonly charset: string; readonly bytes: Buffer[] }[] = []
  for (const word of words) {
    const [, charset = '', encoding = '', content = ''] = WORD.exec(word) ?? []
    const bytes = encoding.toUpperCase() === 'B' ? fromBase64(content) : fromQuoted(content)
    if (!bytes) return undefined
    const last = pieces.at(-1)
    if (last?.charset === charset.toLowerCase()) last.bytes.push(bytes)
    else pieces.push({ charset: charset.toLowerCase(), bytes: [bytes] })
  }
  try {
    const decoders = pieces.map(({ charset, bytes }) =>
      new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(Buffer.concat(bytes)),
    )
    return decoders.join('')
  } catch {
    // The charset is unknown, or the bytes are not valid in it.
    return undefined
  }
}

function fromBase64(content: string): Buffer | undefined {
  return /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/.test(content)
    ? Buffer.from(content, 'base64')
    : undefined
}

function fromQuoted(content: string): Buffer | undefined {
  if (/=(?![0-9A-Fa-f]{2})|[^!-~]/.test(content)) return undefined
  const bytes = content
    .replace(/_/g, ' ')
    .replace(/=([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  return Buffer.from(bytes, 'latin1')
}
