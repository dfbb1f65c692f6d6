/** What HTTP cannot carry in a header: control characters, and more than one byte for a character. */
const UNFIT = /[^\t\x20-\x7e\x80-\xff]/
const WIDE = /[^\0-\xff]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a header cannot carry
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/

/** True if HTTP can carry the text in a header as it is: one byte for each character, and no end of the line. */
function fitsHeader(text: string): boolean {
  return !UNFIT.test(text)
}

/**
 * Returns a text that HTTP can carry in a header, with one character for each byte: text beyond Latin-1 becomes its
 * bytes in UTF-8, and a control character a space. Text in Latin-1 stays as it is, because it may be bytes already.
 */
export function headerText(text: string): string {
  return fitsHeader(text) ? text : withoutControls(WIDE.test(text) ? utf8Bytes(text) : text)
}

/** Replaces the control characters that a header cannot carry with spaces. A tab stays. */
function withoutControls(text: string): string {
  return CONTROL.test(text) ? text.replace(new RegExp(CONTROL, 'g'), ' ') : text
}

/** True if the text has a control character that a header cannot carry. */
export function hasControls(text: string): boolean {
  return CONTROL.test(text)
}

/** Returns a text for a header of an answer: its bytes in UTF-8, with spaces for control characters. */
export function unicodeHeader(text: string): string {
  return utf8Bytes(withoutControls(text))
}

/** Returns the bytes of a text in UTF-8, one character for each, as the headers of a request have them. */
export function utf8Bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
