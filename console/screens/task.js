import { sendJson } from '../lib/api.js'
import { withClientToken } from '../lib/client-token.js'
import { formatCount, visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Amount } from '../parts/amount.js'
import { Answer } from '../parts/answer.js'
import { Copied } from '../parts/copy.js'
import { Confirm } from '../parts/dialog.js'
import { Known, Reached, stateFacts } from '../parts/known.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { Facts, Table } from '../parts/table.js'
import { Time } from '../parts/time.js'
import { capFacts } from './archive.js'

/** One task with the bids of storage providers and its deals. */
export function Task({ params: { uuid } }) {
  const task = usePages({ path: `/-/task/v1/tasks/${uriEncode(uuid)}`, query: { 'max-items': 100 } }, 'Deals')
  const name = task.value?.answer.Task.TaskName
  return html`<${Crumbs} links=${[{ href: linkTo(['tasks']), text: 'Tasks' }, { href: linkTo(['tasks', uuid]), text: html`<span class="cid"><${Middle} text=${name || uuid} /></span>` }]} />
    <${Page} title=${`Task ${name || uuid}`} heading=${html`Task <${Name} text=${name || uuid} />`} actions=${html`<button type="button" onClick=${task.reload}>Refresh</button>`}>
      <${Reached} of=${task} show=${({ rows, next, answer }) => html`<${Shown} uuid=${uuid} deals=${rows} next=${next} answer=${answer} />`} />
    <//>`
}

/** Members that are shown above, each once. */
const SHOWN = [
  'TaskUuid',
  'TaskName',
  'Status',
  'MinerId',
  'MaxPrice',
  'CreatedAt',
  'CreatedOn',
  'BidCount',
  'DealCount',
]

function Shown({ uuid, deals, next, answer }) {
  const { Bids, Task: task, AverageBid: average, TotalDealCount: count } = answer
  const [accepts, setAccepts] = useState()
  const bids = Bids.flatMap((bid) =>
    (bid.User?.Providers.length ? bid.User.Providers : [{ MinerId: bid.Username }]).map(({ MinerId }) => ({
      ...bid,
      MinerId,
    })),
  )
  const choice = {
    name: 'Choice',
    bare: true,
    cell: (bid) =>
      bid.Status === 'New' &&
      html`<button type="button" aria-label=${`Accept the bid of ${visibleText(bid.MinerId)}`} onClick=${() => setAccepts(bid)}>Accept…</button>`,
  }
  const rest = Object.entries(task).filter(([name]) => !SHOWN.includes(name))
  return html`<${Facts}
      facts=${[
        ...stateFacts('task', task.Status),
        ['Provider', task.MinerId || undefined],
        ['At most', task.MaxPrice && html`<${Amount} of=${task.MaxPrice} unit="fil per GiB and epoch" />`],
        ['Average bid', average && html`<${Amount} of=${average} />`],
        ['Posted', task.CreatedAt && html`<${Time} of=${task.CreatedAt} exact />`],
        ['Task', html`<${Copied} text=${uuid} what="the id of the task" />`],
      ]}
    />
    <h2>Bids</h2>
    <${Table} caption="Bids" rows=${bids} keyOf=${(bid) => `${bid.BidId} ${bid.MinerId}`} columns=${task.MinerId ? bidColumns : [...bidColumns, choice]} empty=${task.Status === 'Created' ? 'There is no bid yet. Providers bid within some minutes: refresh then.' : 'There is no bid.'} />
    ${accepts && html`<${Accept} uuid=${uuid} bid=${accepts} count=${count} onClose=${() => setAccepts(undefined)} />`}
    <h2>Deals</h2>
    <${Table} caption="Deals of the task" rows=${deals} keyOf=${(deal) => deals.indexOf(deal)} columns=${dealColumns} empty="The task has no deal yet." />
    <${PageLinks} next=${next} />
    <${Folded} title="More facts"><${Answer} value=${Object.fromEntries(rest)} title="Task" /><${Answer} value=${deals} title="All facts of the deals" /><//>`
}

const bidColumns = [
  { name: 'Provider', by: ({ MinerId }) => MinerId, cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
  {
    name: 'Fil per GiB and epoch',
    by: ({ Price }) => Number(Price),
    number: true,
    cell: ({ Price }) => html`<${Amount} of=${Price} />`,
  },
  { name: 'State', by: ({ Status }) => Status ?? '', cell: ({ Status }) => html`<${Known} kind="bid" of=${Status} />` },
  { name: 'Proposal', cell: ({ Proposal }) => html`<${Name} text=${Proposal} />` },
  { name: 'Made', by: ({ CreatedAt }) => CreatedAt ?? '', cell: ({ CreatedAt }) => html`<${Time} of=${CreatedAt} />` },
]

const dealColumns = [
  {
    name: 'State',
    by: ({ Status }) => Status ?? '',
    cell: ({ Status }) => html`<${Known} kind="taskDeal" of=${Status} />`,
  },
  { name: 'Changed', cell: ({ UpdatedAt }) => html`<${Time} of=${UpdatedAt} />` },
  { name: 'Deal', cell: ({ DealCid }) => html`<${Copied} text=${DealCid} what="the CID of the deal" />` },
  { name: 'Note', cell: ({ Note }) => html`<${Name} text=${Note} />` },
]

function Accept({ uuid, bid: { MinerId, Price }, count, onClose }) {
  const action = async (signal) => {
    const request = { path: `/-/task/v1/tasks/${uriEncode(uuid)}/accept`, json: { MinerId, Price } }
    const { JobId } = await withClientToken(request, (token) =>
      sendJson(session.value, { ...request, headers: { ...token, prefer: 'wait=0' }, signal }),
    )
    goTo(['jobs', JobId])
  }
  const client = session.value
  const asked = { path: `/-/task/v1/tasks/${uriEncode(uuid)}/quote`, query: { price: Price } }
  const quote = useLoaded((signal) => sendJson(client, { ...asked, signal }), [client, uuid, Price])
  return html`<${Confirm} title="Accept bid" submit="Accept" action=${action} onClose=${onClose}>
    <${Loaded} of=${quote} show=${({ Total, DailyCap, LeftToday, WithinCap, Currency }) => html`<${Facts} facts=${[['Costs at most', Total ? `${Total} ${Currency}` : 'not known'], ...capFacts(DailyCap, LeftToday, Currency)]} />${WithinCap || html`<p class="problem" role="status">It would exceed what may be spent today.</p>`}`} />
    <p><${Name} text=${MinerId} /> gets the task with its ${formatCount(count, 'deal')}, for <strong><${Name} text=${Price} /> fil per GiB and epoch</strong> of each piece. The other bids lose. A task keeps its provider: this cannot be undone, also if you close this dialog after the request was sent.</p>
  <//>`
}
