import { visibleParts } from '../lib/format.js'
import { html } from '../lib/html.js'

/** A text that others have chosen: apart from the text around it, and with marks for hidden characters. */
export function Name({ text }) {
  const parts = visibleParts(String(text ?? ''))
  return html`<bdi class="name"
    >${parts.map((part) => (typeof part === 'string' ? part : html`<span class="mark">${part.mark}</span>`))}</bdi
  >`
}
