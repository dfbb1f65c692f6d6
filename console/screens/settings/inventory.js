import { sendXml } from '../../lib/api.js'
import { visibleText } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { session } from '../../lib/session.js'
import { Confirm, Dialog } from '../../parts/dialog.js'
import { Empty } from '../../parts/empty.js'
import { Form } from '../../parts/form.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { notify } from '../../parts/notices.js'
import { State } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import { indented, storeDocument } from './documents.js'
import { Text } from './inputs.js'
import { inventoryKind, targetOf } from './inventory-form.js'
import { Setting } from './setting.js'

/** All configurations: the server answers a hundred at a time. */
async function readAll(client, bucket, signal) {
  const found = []
  let token
  do {
    const query = { inventory: '', 'continuation-token': token }
    const root = await sendXml(client, { bucket, query, signal })
    found.push(...root.all('InventoryConfiguration'))
    token = root.get('IsTruncated') === 'true' ? root.get('NextContinuationToken') : undefined
  } while (token !== undefined)
  return found
}

/** The inventories of a bucket: a table, and below it the one that is chosen. */
export function Inventories({ bucket }) {
  const client = session.value
  const all = useLoaded((signal) => readAll(client, bucket, signal), [client, bucket])
  const [chosen, setChosen] = useState()
  const [adds, setAdds] = useState(false)
  const [removed, setRemoved] = useState()
  const columns = [
    { name: 'Id', by: (one) => one.get('Id') ?? '', cell: (one) => html`<${Name} text=${one.get('Id')} />` },
    { name: 'State', cell: (one) => html`<${State} of=${one.get('IsEnabled') === 'true' ? 'Enabled' : 'Disabled'} />` },
    { name: 'Written', cell: (one) => one.get('Schedule', 'Frequency') },
    { name: 'Into', cell: (one) => targetOf(one) },
  ]
  const menu = {
    label: (one) => `Actions on inventory ${visibleText(one.get('Id') ?? '')}`,
    items: (one) => [
      { text: 'Change…', action: () => setChosen(one.get('Id')) },
      { text: 'Remove…', action: () => setRemoved(one), danger: true },
    ],
  }
  const add = html`<button type="button" onClick=${() => setAdds(true)}>Add inventory</button>`
  const empty = html`<${Empty} title="There is no inventory." actions=${add} />`
  if (all.error?.code === 'NotImplemented')
    return html`<section class="setting">
      <h2>Inventories</h2>
      <p class="quiet">Not offered here: <${Name} text=${all.error.message} /></p>
    </section>`
  return html`<section class="setting">
      <h2>Inventories</h2>
      <p class="hint">Lists of all objects with their sizes, tags, locks and deals, written into a bucket each day or week.</p>
      <${Loaded} of=${all} show=${(rows) => html`<${Table} caption="Inventories" rows=${rows} keyOf=${(one) => one.get('Id')} columns=${columns} menu=${menu} empty=${empty} />`} />
      ${all.value?.length > 0 && html`<div class="buttons">${add}</div>`}
    </section>
    ${chosen !== undefined && html`<${Setting} key=${chosen} bucket=${bucket} kind=${inventoryKind(chosen)} saved=${all.reload} />`}
    ${removed && html`<${Remove} bucket=${bucket} of=${removed} done=${all.reload} onClose=${() => setRemoved(undefined)} />`}
    ${adds && html`<${Add} add=${setChosen} onClose=${() => setAdds(false)} />`}`
}

function Remove({ bucket, of, done, onClose }) {
  const action = async () => {
    await storeDocument(session.peek(), bucket, inventoryKind(of.get('Id')), '')
    notify('The inventory was removed.')
    done()
  }
  return html`<${Confirm} title="Remove inventory" submit="Remove" action=${action} onClose=${onClose}>
    <p>Files that it has written stay. To undo this, add it again.</p>
    <pre tabindex="0" role="region" aria-label="What is removed">${indented(of)}</pre>
  <//>`
}

function Add({ add, onClose }) {
  const action = async (values) => {
    add(values.get('Id'))
    onClose()
  }
  return html`<${Dialog} title="Add inventory" onClose=${onClose}>
    <${Form} action=${action} submit="Go on" onCancel=${onClose}>
      <${Text} label="Id" hint="1 to 64 letters, digits, dots, hyphens and underscores. It is a part of the keys of the files." name="Id" required pattern="[A-Za-z0-9._\\-]{1,64}" />
    <//>
  <//>`
}
