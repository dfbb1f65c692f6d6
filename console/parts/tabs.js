import { html } from '../lib/html.js'
import { route } from '../lib/router.js'

/**
 * Links to screens that belong together.
 * @param links [{ href, text, above? }]: one that is `above` others is marked while a screen below its address is shown
 */
export function Tabs({ label, links }) {
  const { path } = route.value
  return html`<nav aria-label=${label} class="tabs">
    <ul>
      ${links.map(({ href, text, above }) => html`<li><a href=${href} aria-current=${href === `#${path}` ? 'page' : above && `#${path}`.startsWith(`${href}/`) ? 'true' : undefined}>${text}</a></li>`)}
    </ul>
  </nav>`
}
