import { visibleParts, visibleText } from '../lib/format.js'
import { html } from '../lib/html.js'

/** A run of so many characters without a space may break anywhere, so that it cannot push other columns away. */
const LONG = /\S{25}/
/** Where such a text breaks first. */
const BREAKS = /(?<=[/\-_.:,=&?])(?![/\-_.:,=&?])/
/** Characters of the end that a shortened text keeps: two names mostly differ there. */
const END = 9

/** What may be a text of others: as `Name` shows it. Elements and numbers stay as they are. */
export function shown(value) {
  return typeof value === 'string' ? html`<${Name} text=${value} />` : value
}

/**
 * A text that others have chosen: apart from the text around it, and with marks for hidden characters.
 * @param whole it stays on one line
 */
export function Name({ text, whole }) {
  const all = String(text ?? '')
  const long = !whole && LONG.test(all)
  const plain = (part) =>
    long ? part.split(BREAKS).flatMap((piece, i) => (i > 0 ? [html`<wbr />`, piece] : piece)) : part
  return html`<bdi class=${long ? 'name long' : 'name'}
    >${visibleParts(all).map((part) => (typeof part === 'string' ? plain(part) : html`<span class="mark">${part.mark}</span>`))}</bdi
  >`
}

/** A text of others on one line: what has no room is left out before its last characters. The title has all of it. */
export function Middle({ text }) {
  const characters = Array.from(text)
  if (characters.length < 3 * END) return html`<span class="middle"><${Name} whole text=${text} /></span>`
  return html`<span class="middle" title=${visibleText(text)}
    ><span class="start"><${Name} whole text=${characters.slice(0, -END).join('')} /></span
    ><${Name} whole text=${characters.slice(-END).join('')} /></span
  >`
}
