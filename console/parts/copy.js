import { html } from '../lib/html.js'
import { Name } from './name.js'
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

/** An identifier with a button that copies it. @param what as for `copyText` */
export function Copied({ text, what }) {
  return html`<code class="cid"><${Name} text=${text} /></code>
    <button type="button" class="plain" aria-label=${`Copy ${what}`} onClick=${() => copyText(text, what)}>Copy</button>`
}
