import { sendJson } from '../lib/api.js'
import { formatBytes, formatCount, formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'

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
  const find = async (values) =>
    goTo(['deals'], Object.fromEntries([...values].map(([name, text]) => [name, text.trim()])))
  return html`<${Page} title="Deals">
    <${Form} key=${String(query)} action=${find} submit="Show">
      <div class="filters">
        <${Field} label="State" kind="select" input=${{ name: 'status' }}>
          <option value="">All</option>
          ${[...STATES, 'Recorded'].map((state) => html`<option value=${state} selected=${state === status}>${state}</option>`)}
        <//>
        <${Field} label="Provider" input=${{ name: 'provider', defaultValue: provider, autocomplete: 'off', spellcheck: false }} />
        <${Field} label="Bucket" input=${{ name: 'bucket', defaultValue: bucket, autocomplete: 'off', spellcheck: false }} />
        <${Field} label="Ends within days" input=${{ name: 'days', type: 'number', min: 1, max: 36500, defaultValue: days }} />
      </div>
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
      <${Loaded} of=${providers} show=${({ rows, next }) => html`<${Answer} value=${rows} title="Providers" /><${PageLinks} next=${next} />`} />
    <//>`
}

/** The deals for one object, below the screen of the object. */
export function DealsOf({ bucket, name }) {
  const client = session.value
  const request = { bucket, key: name, query: { 'x-deal': '' } }
  const deals = useLoaded((signal) => sendJson(client, { ...request, signal }), [client, bucket, name])
  return html`<h2>Deals</h2>
    <${Loaded}
      of=${deals}
      show=${({ DealEntry: entries }) => html`<${Table} caption="Deals for this object" rows=${entries.map(({ Deal: deal }) => deal)} keyOf=${({ DealCid }) => DealCid} columns=${columns.filter((column) => column.name !== 'Stores')} empty="There is no deal for this object." />`}
    />
    <div class="buttons">
      <a href=${linkTo(['buckets', bucket, 'archive'], { key: name })}>Make a deal</a>
      <a href=${linkTo(['buckets', bucket, 'pay'], { key: name })}>Upload to IPFS for payment</a>
    </div>`
}
