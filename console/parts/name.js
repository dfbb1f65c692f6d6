import { visibleParts } from '../lib/format.js'
import { html } from '../lib/html.js'

/** What may be a text of others: as `Name` shows it. Elements and numbers stay as they are. */
export function shown(value) {
  return typeof value === 'string' ? html`<${Name} text=${value} />` : value
}

/** A text that others have chosen: apart from the text around it, and with marks for hidden characters. */
export function Name({ text }) {
  const parts = visibleParts(String(text ?? ''))
  return html`<bdi class="name"
    >${parts.map((part) => (typeof part === 'string' ? part : html`<span class="mark">${part.mark}</span>`))}</bdi
  >`
}
