import { sendJson } from '../lib/api.js'
import { withClientToken } from '../lib/client-token.js'
import { formatCount, formatTime, visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Confirm } from '../parts/dialog.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
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
      <${Loaded} of=${task} show=${({ rows, next, answer }) => html`<${Known} uuid=${uuid} deals=${rows} next=${next} answer=${answer} reload=${task.reload} />`} />
    <//>`
}

function Known({ uuid, deals, next, answer, reload }) {
  const { Bids, Task: task, AverageBid: average, TotalDealCount: count } = answer
  const [accepts, setAccepts] = useState()
  const bids = Bids.flatMap((bid) =>
    (bid.User?.Providers ?? [{ MinerId: bid.Username }]).map(({ MinerId }) => ({ ...bid, MinerId })),
  )
  const choice = {
    name: 'Choice',
    cell: (bid) =>
      bid.Status === 'New' &&
      html`<button type="button" aria-label=${`Accept the bid of ${visibleText(bid.MinerId)}`} onClick=${() => setAccepts(bid)}>Accept…</button>`,
  }
  return html`<${Facts}
      facts=${[
        ['State', html`<${State} of=${task.Status} />`],
        ['Provider', task.MinerId],
        ['Average bid', average],
        ['At most', task.MaxPrice],
      ]}
    />
    <h2>Bids</h2>
    <${Table} caption="Bids" rows=${bids} keyOf=${(bid) => `${bid.BidId} ${bid.MinerId}`} columns=${task.MinerId ? bidColumns : [...bidColumns, choice]} empty="There is no bid." />
    ${accepts && html`<${Accept} uuid=${uuid} bid=${accepts} count=${count} done=${reload} onClose=${() => setAccepts(undefined)} />`}
    <h2>Deals</h2>
    <${Answer} value=${deals} title="Deals of the task" />
    <${PageLinks} next=${next} />
    <h2>All facts</h2>
    <${Answer} value=${task} title="Task" />`
}

function Accept({ uuid, bid: { MinerId, Price }, count, done, onClose }) {
  const action = async (signal) => {
    const request = { path: `/-/task/v1/tasks/${uriEncode(uuid)}/accept`, json: { MinerId, Price } }
    await withClientToken(request, (headers) => sendJson(session.value, { ...request, headers, signal }))
    notify('The bid was accepted.')
    done()
  }
  return html`<${Confirm} title="Accept bid" submit="Accept" action=${action} onClose=${onClose}>
    <p><${Name} text=${MinerId} /> gets the task with its ${formatCount(count, 'deal')}, for <strong><${Name} text=${Price} /> fil per GiB and epoch</strong> of each piece. The other bids lose. A task keeps its provider: this cannot be undone, also if you close this dialog after the request was sent. The caps of the server apply.</p>
  <//>`
}

const bidColumns = [
  { name: 'Provider', by: ({ MinerId }) => MinerId, cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
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
