import { sendJson } from '../lib/api.js'
import { formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Amount } from '../parts/amount.js'
import { Empty } from '../parts/empty.js'
import { Field } from '../parts/form.js'
import { Known, Reached, stateOptions } from '../parts/known.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { Page } from '../parts/page.js'
import { Filters, PageLinks, usePages, Words } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { Time } from '../parts/time.js'

/** Those in which a deal is for long, and Recorded: that of a gateway which reports none. */
const STATES = ['CheckForAcceptance', 'Publish', 'Sealing', 'Active', 'Expired', 'Slashed', 'Failing', 'Error'].map(
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
  const isFiltered = [status, provider, bucket, days].some((value) => value !== undefined)
  const actions = html`<button type="button" onClick=${deals.reload}>Refresh</button>
    <a class="button" href=${linkTo(['providers'])}>Providers and their prices</a>`
  return html`<${Page} title="Deals" actions=${actions}>
    <${Filters} query=${query} to=${['deals']}>
      <${Field} label="State" kind="select" input=${{ name: 'status' }}>
        <option value="">All</option>
        ${stateOptions('deal', [...STATES, 'Recorded'], status)}
      <//>
      <${Words} label="Provider" name="provider" value=${provider} />
      <${Words} label="Bucket" name="bucket" value=${bucket} />
      <${Field} label="Ends within days" input=${{ name: 'days', type: 'number', min: 1, max: 36500, defaultValue: days }} />
    <//>
    <${Reached}
      of=${deals}
      show=${({
        rows,
        next,
      }) => html`${rows.length > 0 && html`<p class="quiet" role="status">${formatCount(rows.length, 'deal')}${next ? ' on this page' : ''}</p>`}
        <${Table} caption="Deals" rows=${rows} keyOf=${({ DealCid, JobId }) => `${DealCid} ${JobId}`} columns=${columns} empty=${isFiltered ? 'There is no such deal.' : html`<${NoDeals} />`} />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

function NoDeals() {
  return html`<${Empty} title="There is no deal yet." actions=${html`<a class="button" href=${linkTo(['buckets'])}>Choose an object</a>`}>
    A deal is an agreement with a storage provider to keep a copy of an object. Open an object, and choose Make a deal.
  <//>`
}

const columns = [
  {
    name: 'Deal for',
    rest: true,
    by: source,
    cell: (deal) => html`<a href=${linkTo(['deals', deal.DealCid])}><${Middle} text=${source(deal)} /></a>`,
  },
  {
    name: 'State',
    by: ({ Status }) => Status ?? '',
    cell: ({ Status }) => html`<${Known} kind="deal" of=${Status} />`,
  },
  {
    name: 'Ends',
    by: ({ EstimatedExpiry }) => EstimatedExpiry ?? '',
    cell: ({ EstimatedExpiry }) => html`<${Time} of=${EstimatedExpiry} />`,
  },
  { name: 'Provider', by: ({ MinerId }) => MinerId, cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
  {
    name: 'Fil per epoch',
    by: ({ Price }) => Number(Price),
    number: true,
    cell: ({ Price }) => html`<${Amount} of=${Price} />`,
  },
  { name: 'Made', by: ({ CreatedAt }) => CreatedAt ?? '', cell: ({ CreatedAt }) => html`<${Time} of=${CreatedAt} />` },
]

function source({ Bucket, Key }) {
  return Key === undefined ? Bucket : `${Bucket}/${Key}`
}

/** A link to the object or bucket that a deal stores. */
export function Source({ deal }) {
  const { Bucket, Key } = deal
  const href =
    Key === undefined ? linkTo(['buckets', Bucket, 'objects']) : linkTo(['buckets', Bucket, 'object'], { key: Key })
  return html`<a href=${href}><${Middle} text=${source(deal)} /></a>`
}

/** The deals for one object, below the screen of the object. */
export function DealsOf({ bucket, name, versionId }) {
  const client = session.value
  const request = { bucket, key: name, versionId, query: { 'x-deal': '' } }
  const deals = useLoaded((signal) => sendJson(client, { ...request, signal }), [client, bucket, name, versionId])
  const cid = {
    name: 'Deal',
    cell: ({ DealCid }) => html`<a href=${linkTo(['deals', DealCid])} class="cid"><${Middle} text=${DealCid} /></a>`,
  }
  return html`<h2>Deals</h2>
    <${Loaded}
      of=${deals}
      show=${({ DealEntry: entries }) => html`<${Table} caption="Deals for this object" rows=${entries.map(({ Deal: deal }) => deal)} keyOf=${({ DealCid }) => DealCid} columns=${[cid, ...columns.slice(1)]} empty="There is no deal for this object." />`}
    />
    ${
      // These make a deal of the current version.
      versionId === undefined &&
      html`<div class="buttons">
      <a class="button" href=${linkTo(['buckets', bucket, 'archive'], { key: name })}>Make a deal</a>
      <a class="button" href=${linkTo(['buckets', bucket, 'pay'], { key: name })}>Upload to IPFS for payment</a>
    </div>`
    }`
}
