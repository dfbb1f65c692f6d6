// A screen with each part of the console and what it shows, light and dark side by side: for its pictures and its test,
// which put it among the files of the console. No server has it.
import { html, useState } from '../lib/html.js'
import { Copied } from '../parts/copy.js'
import { Dialog } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Check, Field, Form, Section } from '../parts/form.js'
import { Problem } from '../parts/load.js'
import { Bar, Progress } from '../parts/measure.js'
import { Menu } from '../parts/menu.js'
import { Middle, Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Page } from '../parts/page.js'
import { Badge, State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'
import { Tabs } from '../parts/tabs.js'
import { Bytes, Time } from '../parts/time.js'

const CID = 'bafyreihxtjvbic4xzwgmsbpihb7uolvezojk43yxw6kefgoyoh5uhh6kay'
const HOUR_MS = 3_600_000
const ROWS = [
  { key: 'tram-28.jpg', size: 2_457_600, hours: -1, state: 'Active' },
  {
    key: 'a-long-name-of-a-measurement-2026-11-24-instrument-0417-calibrated.parquet',
    size: 9_000_000_000,
    hours: -30,
  },
  { key: 'invoice\u202efdp.exe', size: 0, hours: -240, state: 'Failed' },
]
const inHours = (hours) => Date.now() + hours * HOUR_MS

function TableSample({ name }) {
  const [keys, change] = useState(new Set(['tram-28.jpg']))
  const columns = [
    {
      name: 'Name',
      rest: true,
      by: ({ key }) => key,
      cell: ({ key }) => html`<a href="#/parts"><${Middle} text=${key} /></a>`,
    },
    { name: 'Size', number: true, by: ({ size }) => size, cell: ({ size }) => html`<${Bytes} of=${size} />` },
    { name: 'Modified', by: ({ hours }) => hours, cell: ({ hours }) => html`<${Time} of=${inHours(hours)} />` },
    { name: 'Deal', cell: ({ state }) => state && html`<${State} of=${state} />` },
  ]
  const menu = { label: ({ key }) => `Actions on ${key.slice(0, 7)}`, items: () => [{ text: 'Download', action() {} }] }
  return html`<${Table} caption=${`Objects, ${name}`} columns=${columns} rows=${ROWS} keyOf=${({ key }) => key} menu=${menu} selection=${{ keys, change, label: ({ key }) => key.slice(0, 7) }} />`
}

const FormSample = () => html`<${Form} action=${async () => undefined} submit="Save">
  <${Section} title="Lock" hint="What is locked cannot be deleted before its time.">
    <${Field} label="Mode" kind="select" hint="GOVERNANCE can be lifted by who may."><option>GOVERNANCE</option><option>COMPLIANCE</option><//>
    <${Field} label="Days" input=${{ type: 'number', defaultValue: 30 }} />
    <${Check} label="Legal hold" hint="Until somebody removes it." />
  <//>
<//>`

/** Each by its name, a function of the name of the column that it is in. */
const PARTS = {
  table: (name) => html`<${TableSample} name=${name} />`,
  facts: () =>
    html`<${Facts} facts=${[['Size', html`<${Bytes} of=${5_300_000} />`], ['Modified', html`<${Time} exact of=${inHours(-3)} />`], ['Storage class', 'STANDARD'], ['Data CID', html`<${Copied} text=${CID} what="the CID" />`]]} />`,
  form: () => html`<${FormSample} />`,
  empty: () =>
    html`<${Empty} title="There is no key pair besides that of the owner." actions=${html`<button type="button" class="main">Add key pair</button>`}>Add one for each program, with no more rights than it needs.<//>`,
  problem: () =>
    html`<${Problem} error=${{ code: 'SlowDown', message: 'Please reduce your request rate.', requestId: 'R7Q2M4' }} retry=${() => undefined} />`,
  progress: (name) =>
    html`<p><${Progress} max=${100} value=${42} label=${`Uploaded, ${name}`} text="42 %" /></p>
      ${[20, 85, 98].map((value) => html`<p><${Bar} max=${100} value=${value} label=${`Quota at ${value} %, ${name}`} text=${`${value} of 100 GiB`} /></p>`)}`,
  badge: () =>
    html`<p><${Badge} shape="▣">Locked<//> <${Badge} kind="good" shape="●">Current<//> <${Badge} kind="wait" shape="◉">Public<//> <${Badge} kind="bad" shape="✕">Deleted<//></p>
      <p class="buttons">${['StorageDealActive', 'StorageDealSealing', 'StorageDealError', 'Unknown'].map((of) => html`<${State} of=${of} />`)}</p>`,
  menu: (name) =>
    html`<${Menu} label=${`Actions on tram-28.jpg, ${name}`} items=${[{ text: 'Download', action() {} }, { text: 'Share', href: '#/parts' }, { text: 'Show versions', checked: true, action() {} }, { text: 'Delete…', danger: true, action() {} }]} />`,
  copy: () => html`<p><${Copied} text=${CID} what="the CID" /></p>`,
  time: () =>
    html`<p><${Time} of=${inHours(-3)} />, <${Time} of=${inHours(120)} />, <${Time} of=${inHours(-2000)} />; <${Time} exact of=${inHours(-3)} /></p>`,
  name: () => html`<p><${Name} text=${ROWS[2].key} /></p><p><${Middle} text=${ROWS[1].key.repeat(2)} /></p>`,
  tabs: (name) =>
    html`${name === 'light' && html`<${Crumbs} links=${[{ href: '#/buckets', text: 'Buckets' }, { href: '#/parts', text: 'photos' }]} />`}<${Tabs} label=${`Bucket, ${name}`} links=${[{ href: '#/parts', text: 'Objects' }, { href: '#/none', text: 'Settings' }]} />`,
}

export function Parts() {
  const [asks, setAsks] = useState(false)
  const undo = () => notify('The folder is gone again.')
  const actions = html`<button type="button" class="main" onClick=${() => setAsks(true)}>Ask</button>
    <button type="button" onClick=${() => notify('The folder 2026/ was created.', 'done', { undo })}>Notify</button>`
  return html`<${Page} title="Parts" actions=${actions}>
    ${Object.entries(PARTS).map(
      ([name, part]) => html`<section id=${`part-${name}`}>
        <h2>${name}</h2>
        <div style=${{ display: 'grid', gridTemplateColumns: 'repeat(auto-fit, minmax(min(24rem, 100%), 1fr))' }}>
          ${['light', 'dark'].map((theme) => html`<div class=${theme} style=${{ colorScheme: theme, padding: '0.5rem 1rem', minWidth: 0, background: 'var(--back)', color: 'var(--text)' }}>${part(theme)}</div>`)}
        </div>
      </section>`,
    )}
    ${
      asks &&
      html`<${Dialog} title="Delete bucket" onClose=${() => setAsks(false)}>
      <${Form} action=${async () => setAsks(false)} submit="Delete bucket" danger onCancel=${() => setAsks(false)}>
        <p>The bucket <strong>photos</strong> is deleted with its settings. This cannot be undone.</p>
        <${Field} label="Type photos to confirm" />
      <//>
    <//>`
    }
  <//>`
}
