import { html } from '../lib/html.js'
import { Icon } from './icon.js'
import { Middle, Name } from './name.js'
import { notify } from './notices.js'

/** Copies a text. @param what names it: `the link` */
export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text)
    notify(`Copied ${what}.`)
  } catch {
    notify('The browser does not let pages copy here: select the text, and copy it.', 'failed')
  }
}

/**
 * An identifier, shortened in its middle, or a command, which is not, with a button that copies all of it.
 * @param what as for `copyText`
 */
export function Copied({ text, what }) {
  if (!text) return undefined
  const shown = /\s/.test(text)
    ? html`<code><${Name} text=${text} /></code>`
    : html`<code class="cid"><${Middle} text=${text} /></code>`
  return html`<span class="copied"
    >${shown}<button type="button" class="sign" aria-label=${`Copy ${what}`} title=${`Copy ${what}`} onClick=${() => copyText(text, what)}><${Icon} of="copy" /></button></span
  >`
}
