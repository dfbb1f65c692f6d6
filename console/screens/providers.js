import { formatSpan } from '../lib/format.js'
import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { Amount } from '../parts/amount.js'
import { Answer } from '../parts/answer.js'
import { Reached } from '../parts/known.js'
import { Name } from '../parts/name.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Table } from '../parts/table.js'

/** The providers that the gateway can make deals with. */
export function Providers() {
  const providers = usePages({ path: '/-/deal/v1/providers', query: { 'max-items': 200 } }, 'Providers')
  return html`<${Crumbs} links=${[{ href: linkTo(['deals']), text: 'Deals' }, { href: linkTo(['providers']), text: 'Providers' }]} />
    <${Page} title="Providers">
      <p class="quiet">Success and time count the newest 2,000 deals of this server: those that became active, and how long that took, as a median.</p>
      <${Reached}
        of=${providers}
        show=${({
          rows,
          next,
        }) => html`<${Table} caption="Providers" rows=${rows} keyOf=${({ MinerId }) => MinerId} columns=${columns} empty="There is no provider." />
          <${PageLinks} next=${next} />
          <${Folded} title="All facts"><${Answer} value=${rows} title="All facts about providers" /><//>`}
      />
    <//>`
}

const columns = [
  {
    name: 'Provider',
    by: ({ MinerId }) => MinerId,
    cell: ({ MinerId }) => html`<a href=${linkTo(['deals'], { provider: MinerId })}><${Name} text=${MinerId} /></a>`,
  },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${State} of=${Status} />` },
  {
    name: 'Fil per GiB and epoch',
    by: ({ Price }) => Number(Price),
    number: true,
    cell: ({ Price }) => html`<${Amount} of=${Price} />`,
  },
  { name: 'Location', by: ({ Location }) => Location, cell: ({ Location }) => Location },
  { name: 'Score', by: ({ Score }) => Score, number: true, cell: ({ Score }) => Score },
  {
    name: 'Success',
    by: successOf,
    number: true,
    cell: ({ Experience: known }) => known && `${known.Active} of ${known.Deals}, ${known.Failed} failed`,
  },
  {
    name: 'Time to active',
    by: ({ Experience: known }) => known?.SecondsToActive ?? Infinity,
    number: true,
    cell: ({ Experience: known }) => known?.SecondsToActive !== undefined && formatSpan(known.SecondsToActive),
  },
]

function successOf({ Experience: known }) {
  return known ? known.Active / known.Deals : -1
}
