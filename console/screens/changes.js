import { formatCount, formatTime } from '../lib/format.js'
import { html } from '../lib/html.js'
import { goTo } from '../lib/router.js'
import { Field } from '../parts/form.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { ManagedTabs } from '../parts/tabs.js'

/** Who changed keys, accounts, the configuration or buckets. */
export function Changes({ query }) {
  const of = ['buckets', 'accounts'].includes(query.get('of')) ? query.get('of') : 'server'
  const changes = usePages({ path: '/-/changes/v1', query: { of, 'max-items': 100 } }, 'Changes')
  return html`<${Page} title="Who changed what">
    <${ManagedTabs} />
    <${Field} label="Changes of" kind="select" input=${{ value: of, onChange: (event) => goTo(['changes'], { of: event.target.value }) }}>
      <option value="server">keys, accounts and the configuration</option>
      <option value="buckets">buckets and their settings</option>
      <option value="accounts">other accounts, of their own keys</option>
    <//>
    <div class="buttons"><button type="button" onClick=${changes.reload}>Refresh</button></div>
    <${Loaded}
      of=${changes}
      show=${({
        rows,
        next,
      }) => html`<p class="quiet">${formatCount(rows.length, 'change')}${next ? ' on this page' : ''}, the newest first</p>
        <${Table} caption="Changes" rows=${rows} keyOf=${({ RequestId }) => RequestId} columns=${columns} empty="There is no change yet." />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

const columns = [
  { name: 'Time', by: ({ Time }) => Time, cell: ({ Time }) => html`<time datetime=${Time}>${formatTime(Time)}</time>` },
  { name: 'Call', by: ({ Action }) => Action, cell: ({ Action }) => html`<${Name} text=${Action} />` },
  {
    name: 'What',
    by: ({ Resource }) => Resource ?? '',
    cell: ({ Resource, Details }) => html`<${Name} text=${Resource} /> <${Name} text=${Details} />`,
  },
  {
    name: 'By',
    by: ({ AccessKeyId }) => AccessKeyId ?? '',
    cell: ({ AccessKeyId, Session }) =>
      html`<${Name} text=${AccessKeyId} />${Session && html` in session <${Name} text=${Session} />`}`,
  },
  { name: 'From', by: ({ Address }) => Address ?? '', cell: ({ Address }) => html`<${Name} text=${Address} />` },
  { name: 'Request', cell: ({ RequestId }) => html`<${Name} text=${RequestId} />` },
]
