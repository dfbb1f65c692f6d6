import { formatTime } from '../lib/format.js'
import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'

/** The tasks that the account has posted at the task platform. */
export function Tasks() {
  const tasks = usePages({ path: '/-/task/v1/my-tasks', query: { 'max-items': 100 } }, 'Tasks')
  return html`<${Page} title="Tasks">
    <p class="quiet">Offline deals: a task asks storage providers of the task platform to make deals for files.</p>
    <div class="buttons"><button type="button" onClick=${tasks.reload}>Refresh</button></div>
    <${Loaded}
      of=${tasks}
      show=${({
        rows,
        next,
      }) => html`<${Table} caption="Tasks" rows=${rows} keyOf=${({ TaskUuid }) => TaskUuid} columns=${taskColumns} empty="This account has posted no task." />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

const taskColumns = [
  {
    name: 'Task',
    by: ({ TaskName }) => TaskName,
    cell: ({ TaskUuid, TaskName }) =>
      html`<a href=${linkTo(['tasks', TaskUuid])}><${Name} text=${TaskName || TaskUuid} /></a>`,
  },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${State} of=${Status} />` },
  { name: 'Bids', by: ({ BidCount }) => BidCount ?? 0, number: true, cell: ({ BidCount }) => BidCount },
  {
    name: 'Deals',
    number: true,
    cell: ({ DealCount = 0, SuccessfulDealCount = 0 }) => `${SuccessfulDealCount} of ${DealCount} done`,
  },
  { name: 'Most', cell: ({ MaxPrice }) => html`<${Name} text=${MaxPrice} />` },
  { name: 'Provider', cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
  { name: 'Posted', by: ({ CreatedAt }) => CreatedAt ?? '', cell: ({ CreatedAt }) => formatTime(CreatedAt) },
]

/** One task with the bids of storage providers and its deals. */
export function Task({ params: { uuid } }) {
  const task = usePages({ path: `/-/task/v1/tasks/${uriEncode(uuid)}`, query: { 'max-items': 100 } }, 'Deals')
  return html`<${Crumbs} links=${[{ href: linkTo(['tasks']), text: 'Tasks' }, { href: linkTo(['tasks', uuid]), text: html`<${Name} text=${uuid} />` }]} />
    <${Page} title=${`Task ${uuid}`} heading=${html`Task <${Name} text=${uuid} />`}>
      <div class="buttons"><button type="button" onClick=${task.reload}>Refresh</button></div>
      <${Loaded} of=${task} show=${({ rows, next, answer }) => html`<${Known} deals=${rows} next=${next} answer=${answer} />`} />
    <//>`
}

function Known({ deals, next, answer: { Bids: bids, Task: task, AverageBid: average } }) {
  return html`<${Facts} facts=${[['State', html`<${State} of=${task.Status} />`], ['Average bid', average]]} />
    <h2>Bids</h2>
    <${Table} caption="Bids" rows=${bids} keyOf=${(bid) => bid.BidId ?? JSON.stringify(bid)} columns=${bidColumns} empty="There is no bid." />
    <h2>Deals</h2>
    <${Answer} value=${deals} title="Deals of the task" />
    <${PageLinks} next=${next} />
    <h2>All facts</h2>
    <${Answer} value=${task} title="Task" />`
}

const bidColumns = [
  { name: 'Bidder', by: ({ Username }) => Username ?? '', cell: ({ Username }) => html`<${Name} text=${Username} />` },
  {
    name: 'Price',
    by: ({ Price }) => Number(Price),
    number: true,
    cell: ({ Price }) => html`<${Name} text=${Price} />`,
  },
  { name: 'State', by: ({ Status }) => Status ?? '', cell: ({ Status }) => html`<${State} of=${Status} />` },
  { name: 'Proposal', cell: ({ Proposal }) => html`<${Name} text=${Proposal} />` },
  { name: 'Made', by: ({ CreatedAt }) => CreatedAt ?? '', cell: ({ CreatedAt }) => formatTime(CreatedAt) },
]
