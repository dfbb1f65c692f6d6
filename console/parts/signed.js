import { html, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Signer } from '../lib/signer.js'
import { Dialog } from './dialog.js'
import { Field, Form } from './form.js'
import { Secret } from './secret.js'

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

function KeyPair() {
  const plain = { required: true, spellcheck: false, autocapitalize: 'off' }
  return html`<fieldset>
    <legend>Sign with the key pair</legend>
    <p class="hint">A session may not do this, so that one that is stolen leaves nothing behind. The pair signs this one request and is then forgotten.</p>
    <${Field} label="Your access key id" input=${{ name: 'pair-id', defaultValue: session.value.pairId, autocomplete: 'username', ...plain }} />
    <${Field} label="Your secret access key" input=${{ name: 'pair-secret', type: 'password', autocomplete: 'current-password', ...plain }} />
  </fieldset>`
}

/** What the endpoint is asked with, signed by the key pair in a form. */
async function clientOf(values) {
  const { endpoint, signer } = session.peek()
  const text = (name) => values.get(name).trim()
  const pair = { accessKeyId: text('pair-id'), secretAccessKey: text('pair-secret'), region: signer.region }
  const client = { endpoint, signer: await Signer.of(pair) }
  client.signer.skew = signer.skew
  return client
}
