import { sendJson } from '../lib/api.js'
import { html } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Answer } from '../parts/answer.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Page } from '../parts/page.js'

const PARTS = [
  ['Gateway', '/-/gateway/v1/server-info'],
  ['Plugins', '/-/plugins/v1'],
  ['Capabilities', '/-/capabilities'],
]

/** What this server is: its gateway, its plugins and what they can do. */
export function Server() {
  return html`<${Page} title="Server">
    ${PARTS.map(([title, path]) => html`<h2>${title}</h2><${Part} title=${title} path=${path} />`)}
  <//>`
}

function Part({ title, path }) {
  const client = session.value
  const part = useLoaded((signal) => sendJson(client, { path, signal }), [client, path])
  return html`<${Loaded} of=${part} show=${(value) => html`<${Answer} title=${title} value=${value} />`} />`
}
