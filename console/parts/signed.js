import { html, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Signer } from '../lib/signer.js'
import { Dialog } from './dialog.js'
import { Field, Form } from './form.js'
import { saveText } from './save.js'

const ONCE =
  'A session may not do this, so that one that is stolen leaves nothing behind. The pair signs this one request and is then forgotten.'

/**
 * A dialog for what the server refuses to sessions: its request is signed with the key pair itself, which is asked for
 * and forgotten.
 * @param action takes the client of the key pair, the values of the named inputs and an AbortSignal; the secret that it
 *   returns, { title, facts: [[name, text]], note }, is shown once
 */
export function SignedDialog({ title, submit, danger, action, onClose, children }) {
  const [secret, setSecret] = useState()
  const send = async (values, signal) => {
    const made = await action(await clientOf(values), values, signal)
    if (made) setSecret(made)
    else if (!signal.aborted) onClose()
  }
  if (secret) return html`<${Secret} ...${secret} onClose=${onClose} />`
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <${Form} action=${send} submit=${submit} danger=${danger} onCancel=${onClose}>
      ${children}
      <${KeyPair} />
    <//>
  <//>`
}

/** The fields of a key pair, which `clientOf` reads. @param hint why it is asked for, and what becomes of it */
export function KeyPair({ hint = ONCE }) {
  const plain = { required: true, spellcheck: false, autocapitalize: 'off' }
  return html`<fieldset>
    <legend>Sign with the key pair</legend>
    <p class="hint">${hint}</p>
    <${Field} label="Your access key id" input=${{ name: 'pair-id', defaultValue: session.value.pairId, autocomplete: 'username', ...plain }} />
    <${Field} label="Your secret access key" input=${{ name: 'pair-secret', type: 'password', autocomplete: 'current-password', ...plain }} />
  </fieldset>`
}

/** What the endpoint is asked with, signed by the key pair in a form. */
export async function clientOf(values) {
  const { endpoint, signer } = session.peek()
  const text = (name) => values.get(name).trim()
  const pair = { accessKeyId: text('pair-id'), secretAccessKey: text('pair-secret'), region: signer.region }
  const client = { endpoint, signer: await Signer.of(pair) }
  client.signer.skew = signer.skew
  return client
}

/**
 * A secret that the server has shown this once. With the dialog it leaves the page.
 * @param facts [[name, text]] as they are copied and saved; @param note what holds for them
 */
function Secret({ title, facts, note, onClose }) {
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
