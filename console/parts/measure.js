import { html } from '../lib/html.js'

/** How much of a limit is used. @param text says it in numbers; @param label what it is, for screen readers */
export function Bar({ value, max, label, text }) {
  return html`<span class="measured">
    <meter min="0" max=${max} value=${Math.min(value, max)} low=${max * 0.8} high=${max * 0.95} optimum="0" aria-label=${label} />
    <span>${text}</span>
  </span>`
}

/** How far some work is. @param max undefined if nobody knows; @param text as for `Bar` */
export function Progress({ value, max, label, text }) {
  return html`<span class="measured"><progress max=${max} value=${max === undefined ? undefined : value} aria-label=${label} /><span>${text}</span></span>`
}
