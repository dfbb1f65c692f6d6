import { sendJson } from '../lib/api.js'
import { withClientToken } from '../lib/client-token.js'
import { formatBytes, formatCount, formatSpan, formatTime, visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Confirm } from '../parts/dialog.js'
import { Field } from '../parts/form.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { Filters, OneOf, PageLinks, usePages, Words } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'
import { capFacts } from './archive.js'

/** As Filecoin names them; Recorded is that of a gateway which reports none. */
const STATES = ['Waiting', 'Check', 'Publish', 'Sealing', 'Active', 'Expired', 'Slashed', 'Failing', 'Error'].map(
  (word) => `StorageDeal${word}`,
)

const DAY_MS = 86_400_000

/** All deals of this server, the newest first, or those that the address asks for. */
export function Deals({ query }) {
  const [status, provider, bucket, days] = ['status', 'provider', 'bucket', 'days'].map(
    (name) => query.get(name) || undefined,
  )
  // Of whole days: a continuation token is valid for the same question alone.
  const [today] = useState(() => Math.floor(Date.now() / DAY_MS))
  const end = /^\d{1,5}$/.test(days ?? '') ? new Date((today + 1 + Number(days)) * DAY_MS).toISOString() : undefined
  const asked = { 'max-items': 100, status, 'miner-id': provider, bucket, 'ends-before': end }
  const deals = usePages({ path: '/-/deal/v1/deals', query: asked }, 'Deals')
  return html`<${Page} title="Deals">
    <${Filters} query=${query} to=${['deals']}>
      <${OneOf} label="State" name="status" of=${[...STATES, 'Recorded']} chosen=${status} />
      <${Words} label="Provider" name="provider" value=${provider} />
      <${Words} label="Bucket" name="bucket" value=${bucket} />
      <${Field} label="Ends within days" input=${{ name: 'days', type: 'number', min: 1, max: 36500, defaultValue: days }} />
    <//>
    <div class="buttons">
      <button type="button" onClick=${deals.reload}>Refresh</button>
      <a href=${linkTo(['providers'])}>Providers and their prices</a>
    </div>
    <${Loaded}
      of=${deals}
      show=${({
        rows,
        next,
      }) => html`<p class="quiet" role="status">${formatCount(rows.length, 'deal')}${next ? ' on this page' : ''}</p>
        <${Table} caption="Deals" rows=${rows} keyOf=${({ DealCid, JobId }) => `${DealCid} ${JobId}`} columns=${columns} empty="There is no such deal." />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

const columns = [
  {
    name: 'Deal',
    cell: ({ DealCid }) => html`<a href=${linkTo(['deals', DealCid])} class="cid"><${Name} text=${DealCid} /></a>`,
  },
  { name: 'Stores', by: source, cell: (deal) => html`<${Source} deal=${deal} />` },
  { name: 'State', by: ({ Status }) => Status ?? '', cell: ({ Status }) => html`<${State} of=${Status} />` },
  { name: 'Provider', by: ({ MinerId }) => MinerId, cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
  { name: 'Price per epoch', by: ({ Price }) => Number(Price), number: true, cell: ({ Price }) => Price },
  { name: 'Made', by: ({ CreatedAt }) => CreatedAt ?? '', cell: ({ CreatedAt }) => formatTime(CreatedAt) },
  {
    name: 'Ends',
    by: ({ EstimatedExpiry }) => EstimatedExpiry ?? '',
    cell: ({ EstimatedExpiry }) => formatTime(EstimatedExpiry),
  },
]

function source({ Bucket, Key }) {
  return Key === undefined ? Bucket : `${Bucket}/${Key}`
}

function Source({ deal }) {
  const { Bucket, Key } = deal
  const href =
    Key === undefined ? linkTo(['buckets', Bucket, 'objects']) : linkTo(['buckets', Bucket, 'object'], { key: Key })
  return html`<a href=${href}><${Name} text=${source(deal)} /></a>`
}

/** States on the way to a deal that is active; all others stay for long, or for ever. */
const UNDER_WAY = /Waiting|Check|Proposal|Transfer|Publish|Sealing|Precommit|ClientFunding/

/** One deal, with its task and the payments for its object where they exist. */
export function Deal({ params: { cid } }) {
  const client = session.value
  const path = `/-/deal/v1/deals/${uriEncode(cid)}`
  const deal = useLoaded((signal) => sendJson(client, { path, query: { expand: 'task,pay' }, signal }), [client, cid])
  usePolling(UNDER_WAY.test(deal.value?.Status), [deal])
  return html`<${Crumbs} links=${[{ href: linkTo(['deals']), text: 'Deals' }, { href: linkTo(['deals', cid]), text: html`<${Name} text=${cid} />` }]} />
    <${Page} title=${`Deal ${cid}`} heading=${html`Deal <${Name} text=${cid} />`}>
      <div class="buttons"><button type="button" onClick=${deal.reload}>Refresh</button></div>
      <${Loaded} of=${deal} show=${(value) => html`<${Life} deal=${value} /><h2>All facts</h2><${Answer} value=${value} />`} />
    <//>`
}

/** The way of the object: from the job that made the deal to its end. */
function Life({ deal }) {
  const { JobId, Cause, PieceSize, PieceCid, DataCid, StartEpoch, EndEpoch } = deal
  return html`<${Facts}
    facts=${[
      ['Stores', deal.Bucket && html`<${Source} deal=${deal} />`],
      ['State', html`<${State} of=${deal.Status} />`],
      ['Message', deal.StatusMessage && html`<${Name} text=${deal.StatusMessage} />`],
      [
        'Made by',
        JobId &&
          html`<a href=${linkTo(['jobs', JobId])}><${Name} text=${JobId} /></a>${Cause && html` (<${Name} text=${Cause} />)`}`,
      ],
      ['Data CID', DataCid && html`<code><${Name} text=${DataCid} /></code>`],
      ['Piece CID', PieceCid && html`<code><${Name} text=${PieceCid} /></code>`],
      ['Piece size', PieceSize && formatBytes(PieceSize)],
      ['Epochs', StartEpoch && `${StartEpoch} to ${EndEpoch}`],
      ['Ends', deal.EstimatedExpiry && formatTime(deal.EstimatedExpiry)],
    ]}
  />`
}

/** The providers that the gateway can make deals with. */
export function Providers() {
  const providers = usePages({ path: '/-/deal/v1/providers', query: { 'max-items': 200 } }, 'Providers')
  return html`<${Crumbs} links=${[{ href: linkTo(['deals']), text: 'Deals' }, { href: linkTo(['providers']), text: 'Providers' }]} />
    <${Page} title="Providers">
      <p class="quiet">Success and time count the newest 2,000 deals of this server: those that became active, and how long that took, as a median.</p>
      <${Loaded}
        of=${providers}
        show=${({
          rows,
          next,
        }) => html`<${Table} caption="Providers" rows=${rows} keyOf=${({ MinerId }) => MinerId} columns=${providerColumns} empty="There is no provider." />
          <${PageLinks} next=${next} />
          <details><summary>All facts</summary><${Answer} value=${rows} title="All facts about providers" /></details>`}
      />
    <//>`
}

const providerColumns = [
  {
    name: 'Provider',
    by: ({ MinerId }) => MinerId,
    cell: ({ MinerId }) => html`<a href=${linkTo(['deals'], { provider: MinerId })}><${Name} text=${MinerId} /></a>`,
  },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${State} of=${Status} />` },
  { name: 'Price', by: ({ Price }) => Number(Price), number: true, cell: ({ Price }) => Price },
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

/** The deals for one object, below the screen of the object. */
export function DealsOf({ bucket, name, versionId }) {
  const client = session.value
  const request = { bucket, key: name, versionId, query: { 'x-deal': '' } }
  const deals = useLoaded((signal) => sendJson(client, { ...request, signal }), [client, bucket, name, versionId])
  return html`<h2>Deals</h2>
    <${Loaded}
      of=${deals}
      show=${({ DealEntry: entries }) => html`<${Table} caption="Deals for this object" rows=${entries.map(({ Deal: deal }) => deal)} keyOf=${({ DealCid }) => DealCid} columns=${columns.filter((column) => column.name !== 'Stores')} empty="There is no deal for this object." />`}
    />
    ${
      // These make a deal of the current version.
      versionId === undefined &&
      html`<div class="buttons">
      <a href=${linkTo(['buckets', bucket, 'archive'], { key: name })}>Make a deal</a>
      <a href=${linkTo(['buckets', bucket, 'pay'], { key: name })}>Upload to IPFS for payment</a>
    </div>`
    }`
}

/** The tasks that the account has posted at the task platform. */
export function Tasks({ query }) {
  const [status, name] = ['status', 'name'].map((filter) => query.get(filter) || undefined)
  const asked = { 'max-items': 100, status, 'task-name': name }
  const tasks = usePages({ path: '/-/task/v1/my-tasks', query: asked }, 'Tasks')
  return html`<${Page} title="Tasks">
    <p class="quiet">Offline deals: a task asks storage providers of the task platform to make deals for files.</p>
    <${Filters} query=${query} to=${['tasks']}>
      <${OneOf} label="State" name="status" of=${TASK_STATES} chosen=${status} />
      <${Words} label="Name contains" name="name" value=${name} />
    <//>
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

const TASK_STATES = ['Created', 'Assigned', 'ActionRequired', 'DealSent', 'ProgressWithFailure', 'Completed']

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
      <${Loaded} of=${task} show=${({ rows, next, answer }) => html`<${Known} uuid=${uuid} deals=${rows} next=${next} answer=${answer} />`} />
    <//>`
}

function Known({ uuid, deals, next, answer }) {
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
    ${accepts && html`<${Accept} uuid=${uuid} bid=${accepts} count=${count} onClose=${() => setAccepts(undefined)} />`}
    <h2>Deals</h2>
    <${Answer} value=${deals} title="Deals of the task" />
    <${PageLinks} next=${next} />
    <h2>All facts</h2>
    <${Answer} value=${task} title="Task" />`
}

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
