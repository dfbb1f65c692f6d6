// What the first bytes of an object are. Neither its name nor its stored type counts: the uploader has chosen both.

const at = (bytes, offset, ...values) => values.every((value, i) => bytes[offset + i] === value)
const word = (bytes, offset, text) => at(bytes, offset, ...Array.from(text, (c) => c.charCodeAt(0)))

/** Types whose bytes a browser decodes and does not execute, and PDF, which has a tab of its own. Never SVG, HTML or XML. */
const TYPES = [
  ['image', 'image/png', (b) => at(b, 0, 0x89) && word(b, 1, 'PNG\r\n')],
  ['image', 'image/jpeg', (b) => at(b, 0, 0xff, 0xd8, 0xff)],
  ['image', 'image/gif', (b) => word(b, 0, 'GIF8')],
  ['image', 'image/webp', (b) => word(b, 0, 'RIFF') && word(b, 8, 'WEBP')],
  ['image', 'image/avif', (b) => word(b, 4, 'ftypavif')],
  ['audio', 'audio/wav', (b) => word(b, 0, 'RIFF') && word(b, 8, 'WAVE')],
  ['audio', 'audio/flac', (b) => word(b, 0, 'fLaC')],
  ['audio', 'audio/mpeg', (b) => word(b, 0, 'ID3') || (at(b, 0, 0xff) && [0xfb, 0xf3, 0xf2].includes(b[1]))],
  ['audio', 'audio/ogg', (b) => word(b, 0, 'OggS')],
  ['video', 'video/webm', (b) => at(b, 0, 0x1a, 0x45, 0xdf, 0xa3)],
  ['pdf', 'application/pdf', (b) => word(b, 0, '%PDF-')],
  ['video', 'video/mp4', (b) => word(b, 4, 'ftyp')],
]

/**
 * What can be shown of an object that begins so: { kind: 'image' | 'audio' | 'video' | 'pdf', type } or { kind: 'text', text };
 * undefined for all else.
 * @param whole false if there are more bytes, so that the last character may be cut
 */
export function shownAs(bytes, whole) {
  const known = TYPES.find(([, , fits]) => fits(bytes))
  if (known) return { kind: known[0], type: known[1] }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !whole })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: text has none of them
    return /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text) ? undefined : { kind: 'text', text }
  } catch {
    return undefined
  }
}
