import { html, useState } from '../lib/html.js'
import { Dialog } from './dialog.js'
import { saveText } from './save.js'

/**
 * A secret that the server has shown this once. With the dialog it leaves the page.
 * @param facts [[name, text]] as they are copied and saved; @param note what holds for them
 */
export function Secret({ title, facts, note, onClose }) {
  const [copied, setCopied] = useState()
  const text = facts.map(([name, value]) => `${name}=${value}\n`).join('')
  const copy = async (name, value) => {
    // A page without the focus may not write to the clipboard; the text can still be selected.
    await navigator.clipboard.writeText(value).then(
      () => setCopied(`${name} copied.`),
      () => setCopied('The browser does not allow this page to copy: select the text instead.'),
    )
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p><strong>The secret is shown now, and never again.</strong> ${note}</p>
    <dl class="facts">
      ${facts.map(
        ([name, value]) => html`<div>
          <dt>${name}</dt>
          <dd><code>${value}</code> <button type="button" onClick=${() => copy(name, value)} aria-label=${`Copy ${name}`}>Copy</button></dd>
        </div>`,
      )}
    </dl>
    <p role="status">${copied}</p>
    <div class="buttons">
      <button type="button" onClick=${() => saveText(`${facts[0][1].replace(/[^\w.-]/g, '_')}.env`, text)}>Save as a file</button>
      <button type="button" class="main" onClick=${onClose}>I have stored it</button>
    </div>
  <//>`
}
