import { sendJson } from '../lib/api.js'
import { formatBytes, formatCount, formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Field } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notifyError } from '../parts/notices.js'
import { Crumbs, Page } from '../parts/page.js'
import { More, usePages } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'

/** All deals of this server, the newest first. */
export function Deals() {
  const deals = usePages({ path: '/-/deal/v1/deals', query: { 'max-items': 200 } }, 'Deals')
  const [words, setWords] = useState('')
  const [days, setDays] = useState('')
  return html`<${Page} title="Deals">
    <div class="pair">
      <${Field} label="State, provider or bucket contains" input=${{ value: words, onInput: (event) => setWords(event.target.value), autocomplete: 'off' }} />
      <${Field} label="Ends within days" input=${{ type: 'number', min: 1, value: days, onInput: (event) => setDays(event.target.value) }} />
    </div>
    <div class="buttons">
      <button type="button" onClick=${deals.reload}>Refresh</button>
      <a href=${linkTo(['providers'])}>Providers and their prices</a>
    </div>
    <${Loaded}
      of=${deals}
      show=${({ rows, next }) => {
        const shown = rows.filter((deal) => matches(deal, words.toLowerCase(), days))
        return html`<p class="quiet">${formatCount(shown.length, 'deal')}${shown.length < rows.length ? ` of ${rows.length}` : ''}${next ? ' that are loaded' : ''}</p>
          <${Table} caption="Deals" rows=${shown} keyOf=${({ DealCid, JobId }) => `${DealCid} ${JobId}`} columns=${columns} empty="There is no such deal." />`
      }}
    />
    <${More} pages=${deals} onError=${notifyError} />
  <//>`
}

function matches({ Status, MinerId, Bucket, EstimatedExpiry }, words, days) {
  if (![Status, MinerId, Bucket].some((text) => (text ?? '').toLowerCase().includes(words))) return false
  return days === '' || (EstimatedExpiry && Date.parse(EstimatedExpiry) <= Date.now() + Number(days) * 86_400_000)
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

/** One deal, with its task and the payments for its object where they exist. */
export function Deal({ params: { cid } }) {
  const client = session.value
  const path = `/-/deal/v1/deals/${uriEncode(cid)}`
  const deal = useLoaded((signal) => sendJson(client, { path, query: { expand: 'task,pay' }, signal }), [client, cid])
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
        JobId && html`<a href=${linkTo(['jobs', JobId])}><${Name} text=${JobId} /></a>${Cause ? ` (${Cause})` : ''}`,
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
      <${Loaded} of=${providers} show=${({ rows }) => html`<${Answer} value=${rows} title="Providers" />`} />
      <${More} pages=${providers} onError=${notifyError} />
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
    </div>`
}
