import { sendJson } from '../lib/api.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Answer } from '../parts/answer.js'
import { Field } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { SignedDialog } from '../parts/signed.js'
import { Table } from '../parts/table.js'

const PARTS = [
  ['Gateway', '/-/gateway/v1/server-info'],
  ['Capabilities', '/-/capabilities'],
]

/** What this server is: its gateway, its plugins and what they can do, and the options in force. */
export function Server() {
  const [reloads, setReloads] = useState(false)
  const [turn, setTurn] = useState(0)
  const reload = html`<button type="button" onClick=${() => setReloads(true)}>Read the configuration again…</button>`
  return html`<${Page} title="Server" actions=${reload}>
    ${PARTS.map(([title, path]) => html`<h2>${title}</h2><${Part} path=${path} show=${(value) => html`<${Answer} title=${title} value=${value} />`} />`)}
    <h2>Plugins</h2>
    <${Part} path="/-/plugins/v1" query=${{ 'max-items': 1000 }} show=${({ Plugins }) => html`<${Table} caption="Plugins" rows=${Plugins} keyOf=${(plugin) => plugin.Name} columns=${pluginColumns} />`} />
    <p><a href=${linkTo(['calls'])}>A form for each call</a></p>
    <h2>Options in force</h2>
    <${Part} key=${turn} path="/-/options/v1" query=${{ 'max-items': 1000 }} show=${({ Options }) => html`<${OptionList} options=${Options} />`} />
    ${reloads && html`<${Reload} done=${() => setTurn(turn + 1)} onClose=${() => setReloads(false)} />`}
  <//>`
}

function Part({ path, query, show }) {
  const client = session.value
  const part = useLoaded((signal) => sendJson(client, { path, query, signal }), [client, path])
  return html`<${Loaded} of=${part} show=${show} />`
}

const pluginColumns = [
  { name: 'Plugin', by: (plugin) => plugin.Name, cell: (plugin) => html`<${Name} text=${plugin.Name} />` },
  { name: 'What it adds', cell: ({ Summary }) => html`<${Name} text=${Summary} />` },
  {
    name: 'Calls',
    by: ({ Calls }) => Calls.length,
    cell: ({ Calls }) =>
      html`<details><summary>${Calls.length}</summary><${Name} text=${Calls.join(', ')} /></details>`,
  },
]

/** Which options to show. */
const KINDS = [
  ['changed', 'that differ from their default', ({ IsDefault }) => !IsDefault],
  ['live', 'that a reload changes', ({ Live }) => Live],
  ['all', 'all', () => true],
]

function OptionList({ options }) {
  const [kind, setKind] = useState('changed')
  const [, , fits] = KINDS.find(([name]) => name === kind)
  return html`<${Field} label="Show options" kind="select" input=${{ value: kind, onChange: (event) => setKind(event.target.value) }}>
      ${KINDS.map(([name, text]) => html`<option value=${name}>${text}</option>`)}
    <//>
    <${Table} caption="Options in force" rows=${options.filter(fits)} keyOf=${({ Option }) => Option} columns=${optionColumns} empty="There is no such option." />`
}

const optionColumns = [
  { name: 'Option', by: ({ Option }) => Option, cell: ({ Option }) => html`<code><${Name} text=${Option} /></code>` },
  {
    name: 'Value',
    cell: ({ Value, Secret, IsSet }) => {
      if (Value !== undefined) return html`<${Name} text=${Value} />`
      return Secret && IsSet ? 'set, and not shown' : 'none'
    },
  },
  { name: 'Changes by', by: ({ Live }) => String(Live), cell: ({ Live }) => (Live ? 'a reload' : 'a restart') },
  { name: 'What it is', cell: ({ Help }) => html`<${Name} text=${Help} />` },
]

function Reload({ done, onClose }) {
  const action = async (client, _, signal) => {
    const { Changed, NeedRestart } = await sendJson(client, { path: '/-/reload', json: {}, signal })
    const list = (options) => options.join(', ') || 'none'
    notify(`Options in use with new values: ${list(Changed)}. After a restart: ${list(NeedRestart)}.`)
    done()
  }
  return html`<${SignedDialog} title="Read the configuration again" submit="Read it again" action=${action} onClose=${onClose}>
    <p>The server reads its config file and all files that this names. It uses all changes that it can make while it runs, or nothing if there is a mistake. To undo a change, restore the file and read it again.</p>
  <//>`
}
