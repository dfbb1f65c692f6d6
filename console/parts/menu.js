import { html, useEffect, useRef, useState } from '../lib/html.js'
import { Icon } from './icon.js'

const GAP = 8

/**
 * A button that opens a list of actions.
 * @param label what the button is for: `Actions on photo.jpg`
 * @param items [{ text, action } or { text, href }], with `danger` for what removes and `checked`, true or false, for what
 *   is switched; falsy ones are left out. A function that makes them is called when the menu opens
 */
export function Menu({ label, items }) {
  const [open, setOpen] = useState(false)
  const button = useRef(null)
  const close = () => {
    setOpen(false)
    button.current?.focus({ preventScroll: true })
  }
  return html`<button
      type="button"
      class="sign"
      ref=${button}
      aria-label=${label}
      title=${label}
      aria-haspopup="menu"
      aria-expanded=${open}
      onClick=${() => setOpen(!open)}
    >
      <${Icon} of="more" />
    </button>
    ${open && html`<${Items} label=${label} items=${typeof items === 'function' ? items() : items} button=${button.current} onClose=${close} />`}`
}

function Items({ label, items, button, onClose }) {
  const ref = useRef(null)
  useEffect(() => {
    const menu = ref.current
    // So that a click on the button closes the menu, and does not open it again.
    button.popoverTargetElement = menu
    menu.showPopover()
    place(menu, button)
    menu.querySelector('[role^=menuitem]')?.focus({ preventScroll: true })
    const moved = ({ target }) => target === document && onClose()
    addEventListener('scroll', moved, true)
    addEventListener('resize', onClose)
    return () => {
      removeEventListener('scroll', moved, true)
      removeEventListener('resize', onClose)
    }
  }, [])
  return html`<div ref=${ref} popover="auto" role="menu" aria-label=${label} onKeyDown=${onKey} onToggle=${({ newState }) => newState === 'closed' && onClose()}>
    ${items.filter(Boolean).map((item) => html`<${Item} item=${item} onClose=${onClose} />`)}
  </div>`
}

function Item({ item: { text, action, href, danger, checked }, onClose }) {
  if (href) return html`<a role="menuitem" tabindex="-1" href=${href} onClick=${onClose}>${text}</a>`
  const choose = () => {
    // First, so that a dialog of the action returns the focus to the button of the menu.
    onClose()
    action()
  }
  return html`<button type="button" role=${checked === undefined ? 'menuitem' : 'menuitemcheckbox'} aria-checked=${checked} tabindex="-1" class=${danger ? 'danger' : undefined} onClick=${choose}>${text}</button>`
}

/** Below the button and in line with its end, or above it, always within the window. */
function place(menu, button) {
  const { right, top, bottom } = button.getBoundingClientRect()
  const { width, height } = menu.getBoundingClientRect()
  const below = bottom + GAP / 2
  const left = Math.max(GAP, Math.min(right - width, innerWidth - width - GAP))
  menu.style.left = `${left}px`
  menu.style.top = `${below + height + GAP > innerHeight ? Math.max(GAP, top - height - GAP / 2) : below}px`
}

/** Arrows, Home and End go through the items; Tab leaves them as Escape does. */
function onKey(event) {
  const all = [...event.currentTarget.querySelectorAll('[role^=menuitem]')]
  const at = all.indexOf(document.activeElement)
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key]
  if (event.key === 'Tab') event.currentTarget.hidePopover()
  if (next === undefined) return
  event.preventDefault()
  all.at(next % all.length).focus({ preventScroll: true })
}
