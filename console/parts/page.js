import { visibleText } from '../lib/format.js'
import { html, useEffect, useRef, useState } from '../lib/html.js'
import { route } from '../lib/router.js'

/**
 * A screen: its title in the window, and as the heading that has the focus after a change of the screen or of its
 * page of a list.
 * @param title text; @param heading elements instead of it, where it contains a name; @param actions buttons beside it
 */
export function Page({ title, heading, actions, children }) {
  const ref = useRef(null)
  const { path, query } = route.value
  useEffect(() => {
    document.title = `${visibleText(title)} · dealgate`
  }, [title])
  useEffect(() => {
    ref.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [path, query.get('token')])
  return html`<div class="page-head">
      <h1 tabindex="-1" ref=${ref}>${heading ?? visibleText(title)}</h1>
      ${actions && html`<div class="buttons">${actions}</div>`}
    </div>
    ${children}`
}

/** What is wanted less often, behind its title: it is read when it is first opened. */
export function Folded({ title, children }) {
  const [seen, setSeen] = useState(false)
  const onToggle = ({ target }) => setSeen(seen || target.open)
  return html`<details onToggle=${onToggle}><summary>${title}</summary>${seen && children}</details>`
}

/** Links to what contains this screen. @param links [{ href, text }] */
export function Crumbs({ links }) {
  return html`<nav aria-label="Path" class="crumbs">
    <ol>
      ${links.map(({ href, text }, i) => html`<li><a href=${href} aria-current=${i === links.length - 1 ? 'page' : undefined}>${text}</a></li>`)}
    </ol>
  </nav>`
}
