import { formatCount } from '../lib/format.js'
import { html } from '../lib/html.js'
import { goTo } from '../lib/router.js'
import { Copied } from '../parts/copy.js'
import { Empty } from '../parts/empty.js'
import { Field } from '../parts/form.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { Time } from '../parts/time.js'

/** Who changed keys, accounts, the configuration or buckets. */
export function Changes({ query }) {
  const of = ['buckets', 'accounts'].includes(query.get('of')) ? query.get('of') : 'server'
  const changes = usePages({ path: '/-/changes/v1', query: { of, 'max-items': 100 } }, 'Changes')
  const refresh = html`<button type="button" onClick=${changes.reload}>Refresh</button>`
  return html`<${Page} title="Who changed what" actions=${refresh}>
    <div class="choice">
      <${Field} label="Changes of" kind="select" input=${{ value: of, onChange: (event) => goTo(['changes'], { of: event.target.value }) }}>
        <option value="server">keys, accounts and the configuration</option>
        <option value="buckets">buckets and their settings</option>
        <option value="accounts">other accounts, of their own keys</option>
      <//>
    </div>
    <${Loaded}
      of=${changes}
      show=${({
        rows,
        next,
      }) => html`<p class="quiet">${formatCount(rows.length, 'change')}${next ? ' on this page' : ''}, the newest first</p>
        <${Table} caption="Changes" rows=${rows} keyOf=${({ RequestId }) => RequestId} columns=${columns} empty=${html`<${Empty} title="There is no change yet.">Each change of a key pair, an account, a bucket's settings or the configuration appears here.<//>`} />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

const columns = [
  { name: 'Time', by: (change) => change.Time, cell: (change) => html`<${Time} of=${change.Time} />` },
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
  { name: 'Request', cell: ({ RequestId }) => html`<${Copied} text=${RequestId} what="the request id" />` },
]
