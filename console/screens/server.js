import { sendJson } from '../lib/api.js'
import { html, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Answer } from '../parts/answer.js'
import { Confirm } from '../parts/dialog.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { notify } from '../parts/notices.js'
import { Page } from '../parts/page.js'

const PARTS = [
  ['Gateway', '/-/gateway/v1/server-info'],
  ['Plugins', '/-/plugins/v1'],
  ['Capabilities', '/-/capabilities'],
]

/** What this server is: its gateway, its plugins and what they can do. */
function Server() {
  const [asking, setAsking] = useState(false)
  return html`<${Page} title="Server">
    <div class="buttons"><button type="button" onClick=${() => setAsking(true)}>Reload the configuration…</button></div>
    ${PARTS.map(([title, path]) => html`<h2>${title}</h2><${Part} title=${title} path=${path} />`)}
    ${asking && html`<${Reload} onClose=${() => setAsking(false)} />`}
  <//>`
}

function Part({ title, path }) {
  const client = session.value
  const part = useLoaded((signal) => sendJson(client, { path, signal }), [client, path])
  return html`<${Loaded} of=${part} show=${(value) => html`<${Answer} title=${title} value=${value} />`} />`
}

function Reload({ onClose }) {
  const action = async () => {
    const { Changed, NeedRestart } = await sendJson(session.value, { method: 'POST', path: '/-/reload' })
    const later = NeedRestart.length > 0 ? ` After a restart: ${NeedRestart.join(', ')}.` : ''
    notify(`The configuration was read again. Changed: ${Changed.join(', ') || 'nothing'}.${later}`)
  }
  return html`<${Confirm} title="Reload the configuration" submit="Reload" action=${action} onClose=${onClose}>
    <p>The server reads its config file again. A file that cannot be used changes nothing. Only a lasting key pair of the server's own account may do this.</p>
  <//>`
}

export const screens = [{ path: '/server', nav: 'Server', View: Server }]
