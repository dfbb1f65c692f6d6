import { html, useEffect, useRef } from '../lib/html.js'
import { route } from '../lib/router.js'

/**
 * Links to screens that belong together.
 * @param links [{ href, text, above?, also? }]: one that is `above` others is marked while a screen below its address is
 *   shown; `also` is another address of the same screen
 */
export function Tabs({ label, links }) {
  const { path } = route.value
  const list = useRef(null)
  // A narrow window has no room for all of them: the current one is in view.
  useEffect(() => {
    const tab = list.current.querySelector('[aria-current]')
    if (tab) list.current.scrollLeft = tab.offsetLeft - (list.current.clientWidth - tab.offsetWidth) / 2
  }, [path])
  return html`<nav aria-label=${label} class="tabs">
    <ul ref=${list}>
      ${links.map((link) => html`<li><a href=${link.href} aria-current=${current(link, `#${path}`)}>${link.text}</a></li>`)}
    </ul>
  </nav>`
}

function current({ href, above, also }, address) {
  if (address === href || address === also) return 'page'
  return above && address.startsWith(`${href}/`) ? 'true' : undefined
}
