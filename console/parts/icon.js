import { html } from '../lib/html.js'

/** Lines on a square of 16. */
const LINES = {
  menu: 'M2 4h12M2 8h12M2 12h12',
  find: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  copy: 'M6 6h7v8H6zM10 6V3H3v8h3',
  close: 'M4 4l8 8M12 4l-8 8',
  folder: 'M2 4h4l1.5 2H14v7H2z',
  file: 'M4 2h5l3 3v9H4zM9 2v3h3',
}

/** A sign beside a word, or in a button that has a label: screen readers do not hear of it. */
export function Icon({ of }) {
  return html`<svg class=${`icon ${of}`} viewBox="0 0 16 16" aria-hidden="true"><path d=${LINES[of]} /></svg>`
}
