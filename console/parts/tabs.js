import { html } from '../lib/html.js'
import { route } from '../lib/router.js'

/** Links to screens that belong together. @param links [{ href, text }] */
export function Tabs({ label, links }) {
  const { path } = route.value
  return html`<nav aria-label=${label} class="tabs">
    <ul>
      ${links.map(({ href, text }) => html`<li><a href=${href} aria-current=${href === `#${path}` ? 'page' : undefined}>${text}</a></li>`)}
    </ul>
  </nav>`
}
