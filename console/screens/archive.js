import { sendJson } from '../lib/api.js'
import { withClientToken } from '../lib/client-token.js'
import { formatBytes } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Amount } from '../parts/amount.js'
import { Confirm } from '../parts/dialog.js'
import { Check, Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { Facts, Table } from '../parts/table.js'
import { pathTo } from './bucket-tabs.js'

export const EPOCHS_PER_DAY = 2880
const DAYS = { min: 180, max: 3650, value: 180 }

/** A deal for one object. Its quote and choice end when the address names another object. */
export function Archive({ params: { bucket }, query }) {
  const key = query.get('key') ?? ''
  // A request without a key would be one for the whole bucket.
  if (key === '')
    return html`<${Page} title="Make a deal"><p>This address names no object. Choose one in its bucket.</p><//>`
  return html`<${DealFor} key=${linkTo([bucket, key])} bucket=${bucket} name=${key} />`
}

/** First what the deal costs and who would take it, then the confirmation. */
function DealFor({ bucket, name: key }) {
  const object = linkTo(['buckets', bucket, 'object'], { key })
  const folder = key.slice(0, key.lastIndexOf('/', key.length - 2) + 1)
  const [quote, setQuote] = useState()
  const [chosen, setChosen] = useState()
  const ask = async (values, signal) => {
    const terms = termsOf(values)
    setQuote({ terms, answer: await quoteOf(bucket, key, terms, signal) })
  }
  return html`<${Crumbs} links=${[...pathTo(bucket, folder), { href: object, text: html`<${Name} text=${key.slice(folder.length)} />` }, { href: linkTo(['buckets', bucket, 'archive'], { key }), text: 'Make a deal' }]} />
    <${Page} title="Make a deal" heading=${html`Make a deal for <${Name} text=${key} />`}>
      <p>A storage provider keeps a copy of the object for the time that you pay for. The quote costs nothing.</p>
      <${Form} action=${ask} submit="Get a quote">
        <${TermFields} />
      <//>
      ${quote && html`<${Quote} quote=${quote.answer} choose=${(candidate) => setChosen({ candidate, terms: quote.terms })} />`}
      ${chosen && html`<${Pay} bucket=${bucket} name=${key} ...${chosen} currency=${quote.answer.Currency} onClose=${() => setChosen(undefined)} />`}
    <//>`
}

export function TermFields() {
  return html`<${Field} label="Days" input=${{ name: 'days', type: 'number', required: true, ...DAYS }} hint="180 to 3,650. A day is 2,880 epochs of 30 seconds, as on Filecoin." />
    <${Check} label="Verified: spend DataCap instead of the full price" input=${{ name: 'verified' }} />
    <${Check} label="Ask for fast retrieval" input=${{ name: 'fast', defaultChecked: true }} />`
}

/** What the fields state, as a request for a deal does. */
export function termsOf(values) {
  return {
    DurationEpochs: Number(values.get('days')) * EPOCHS_PER_DAY,
    VerifiedDeal: values.get('verified') !== null,
    FastRetrieval: values.get('fast') !== null,
  }
}

export function quoteOf(bucket, key, { DurationEpochs, VerifiedDeal }, signal) {
  const json = { DurationEpochs, VerifiedDeal }
  return sendJson(session.value, { bucket, key, query: { 'x-deal-quote': '' }, json, signal })
}

/** Requests a deal, once for the same terms. @returns the id of its job */
export async function orderDeal(bucket, key, json, signal) {
  const request = { bucket, key, query: { 'x-deal': '' }, json }
  const { JobId } = await withClientToken(request, (token) =>
    sendJson(session.value, { ...request, headers: { ...token, prefer: 'wait=0' }, signal }),
  )
  return JobId
}

/** A warning about what is chosen here. */
const CHOSEN = /^No MinerId is stated/

function Quote({ quote: { Bytes, PieceSize, Candidates = [], Warnings = [], Currency, DailyCap, LeftToday }, choose }) {
  const columns = [
    { name: 'Provider', by: ({ MinerId }) => MinerId, cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
    {
      name: 'Location',
      by: ({ Location }) => Location ?? '',
      cell: ({ Location }) => html`<${Name} text=${Location} />`,
    },
    {
      name: `Total (${Currency})`,
      by: ({ Total }) => Number(Total),
      number: true,
      cell: ({ Total }) => html`<${Amount} of=${Total} />`,
    },
    { name: 'Score', by: ({ Score }) => Score ?? 0, number: true, cell: ({ Score }) => Score },
    {
      name: 'Choice',
      cell: (candidate) =>
        html`<button type="button" aria-label=${`Choose ${candidate.MinerId}`} onClick=${() => choose(candidate)}>Choose…</button>`,
    },
  ]
  return html`<h2>Quote</h2>
    <${Facts} facts=${[['Object', formatBytes(Bytes)], ['Piece', formatBytes(PieceSize)], ...capFacts(DailyCap, LeftToday, Currency)]} />
    ${Warnings.filter((warning) => !CHOSEN.test(warning)).map((warning) => html`<p class="quiet"><${Name} text=${warning} /></p>`)}
    <${Table} caption="Providers that would take the deal" rows=${Candidates} keyOf=${({ MinerId }) => MinerId} columns=${columns} empty="No provider would take this deal." />`
}

export function capFacts(cap, left, currency) {
  return [
    ['Cap of the day', cap === undefined ? 'none' : `${cap} ${currency}`],
    ['Left of it', left && html`<${Amount} of=${left} unit=${currency} />`],
  ]
}

function Pay({ bucket, name, candidate, terms, currency, onClose }) {
  const action = async (signal) => {
    const { MinerId, Price } = candidate
    goTo(['jobs', await orderDeal(bucket, name, { ...terms, MinerId, Price }, signal)])
  }
  return html`<${Confirm} title="Make a deal" submit=${`Pay ${candidate.Total} ${currency}`} action=${action} onClose=${onClose}>
    <p><${Name} text=${candidate.MinerId} /> stores <strong><${Name} text=${name} /></strong> for ${terms.DurationEpochs / EPOCHS_PER_DAY} days, for <strong>${candidate.Total} ${currency}</strong> in all. A deal cannot be undone, also if you close this dialog after the request was sent. The caps of the server apply.</p>
  <//>`
}
