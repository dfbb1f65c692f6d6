// What is around every screen: the bar above it, and the navigation.
import { html, signal, useEffect, useRef, useState } from '../lib/html.js'
import { matchPath, route } from '../lib/router.js'
import { session, signOut } from '../lib/session.js'
import { screens } from '../screens.js'
import { Icon } from './icon.js'
import { Name } from './name.js'
import { notifyError } from './notices.js'
import { Badge } from './state.js'

const GROUPS = [...new Set(screens.map(({ group }) => group))]

/** The palette once it is wanted, and whether it is shown. */
const palette = signal({})

async function openPalette() {
  try {
    const { Palette } = await import('./palette.js')
    palette.value = { Palette, open: true }
  } catch {
    notifyError({ message: 'The server of the console did not send this part of the page.' })
  }
}

export function Header() {
  const [menu, setMenu] = useState(false)
  const opener = useRef(null)
  const { path } = route.value
  useEffect(() => setMenu(false), [path])
  useEffect(() => {
    const onKey = (event) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      if (!document.querySelector('dialog[open]')) openPalette()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  const { Palette, open } = palette.value
  const close = () => {
    setMenu(false)
    opener.current.focus()
  }
  return html`<header class="top">
    <button type="button" class="sign open-menu" ref=${opener} aria-label="Screens" aria-haspopup="dialog" aria-expanded=${menu} onClick=${() => setMenu(true)}><${Icon} of="menu" /></button>
    <a class="brand" href="#/buckets">dealgate</a>
    <button type="button" class="go" aria-keyshortcuts="Control+K Meta+K" onClick=${openPalette}>
      <${Icon} of="find" /><span class="wide">Go to…</span><kbd aria-hidden="true">Ctrl K</kbd>
    </button>
    <div class="who">
      <${Who} />
      <button type="button" onClick=${() => signOut()}>Sign out</button>
    </div>
    ${menu && html`<${SideDialog} onClose=${close} />`}
    ${open && html`<${Palette} onClose=${() => (palette.value = { Palette })} />`}
  </header>`
}

/** The key pair or the user that has signed in; a session of its own has only the name of its temporary pair. */
function Who() {
  const { signer, pairId, user, readOnly } = session.value
  return html`<span class="quiet" title="Who has signed in"><${Name} text=${user ?? pairId ?? signer.accessKeyId} /></span>
    ${readOnly && html`<${Badge} kind="wait">Read only<//>`}`
}

/** Beside the screen in a wide window. */
export function Side() {
  return html`<nav class="side beside" aria-label="Screens"><${Entries} /></nav>`
}

/** Over the screen in a narrow one. */
function SideDialog({ onClose }) {
  const ref = useRef(null)
  useEffect(() => {
    const dialog = ref.current
    dialog.showModal()
    return () => dialog.close()
  }, [])
  // A click beside the entries is on the dialog itself, or on what is behind it.
  const beside = (event) => event.target === ref.current && onClose()
  return html`<dialog ref=${ref} class="menu" aria-label="Screens" onClose=${onClose} onClick=${beside}>
    <div class="menu-head">
      <span class="inline"><${Who} /></span>
      <button type="button" class="sign" aria-label="Close the list of screens" onClick=${onClose}><${Icon} of="close" /></button>
    </div>
    <nav class="side" aria-label="Screens"><${Entries} onChosen=${onClose} /></nav>
  </dialog>`
}

function Entries({ onChosen }) {
  const { path } = route.value
  const own = screens.find((screen) => matchPath(screen.path, path))
  return GROUPS.map((group) => {
    const entries = screens.filter((screen) => screen.nav && screen.group === group)
    return html`<h2>${group}</h2>
      <ul>
        ${entries.map((entry) => html`<li><a href=${`#${entry.path}`} aria-current=${current(entry, own, path)} onClick=${onChosen}>${entry.nav}</a></li>`)}
      </ul>`
  })
}

/** `page` for the entry of this screen, `true` for the one that it belongs to. */
function current({ path: entry }, own, path) {
  if (path === entry || (path === '/' && entry === screens[0].path)) return 'page'
  return own?.under === entry || path.startsWith(`${entry}/`) ? 'true' : undefined
}
