import { html } from '../lib/html.js'

/**
 * Instead of a list that has nothing in it: says so, and what to do.
 * @param title a sentence; @param actions buttons or links; the children say more
 */
export function Empty({ title, actions, children }) {
  return html`<div class="empty">
    <p><strong>${title}</strong></p>
    ${children && html`<p>${children}</p>`} ${actions && html`<div class="buttons">${actions}</div>`}
  </div>`
}
