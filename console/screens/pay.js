import { sendJson } from '../lib/api.js'
import { withClientToken } from '../lib/client-token.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Confirm } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { Facts } from '../parts/table.js'
import { Bytes } from '../parts/time.js'
import { capFacts } from './archive.js'
import { pathTo } from './bucket-tabs.js'

/** The upload of one object to the content-addressed network. Its quote ends when the address names another object. */
export function PayScreen({ params: { bucket }, query }) {
  const key = query.get('key') ?? ''
  if (key === '')
    return html`<${Page} title="Upload to IPFS"><p>This address names no object. Choose one in its bucket.</p><//>`
  return html`<${UploadOf} key=${linkTo([bucket, key])} bucket=${bucket} name=${key} />`
}

/** First what the upload is expected to cost, then the confirmation. */
function UploadOf({ bucket, name: key }) {
  const object = linkTo(['buckets', bucket, 'object'], { key })
  const folder = key.slice(0, key.lastIndexOf('/', key.length - 2) + 1)
  const [quote, setQuote] = useState()
  const [asks, setAsks] = useState(false)
  const ask = async (values) => {
    const json = { DurationDays: Number(values.get('days')) }
    setQuote(await sendJson(session.value, { bucket, key, query: { 'x-pay-quote': '' }, json }))
  }
  return html`<${Crumbs} links=${[...pathTo(bucket, folder), { href: object, text: html`<${Name} text=${key.slice(folder.length)} />` }, { href: linkTo(['buckets', bucket, 'pay'], { key }), text: 'Upload to IPFS' }]} />
    <${Page} title="Upload to IPFS" heading=${html`Upload <${Name} text=${key} /> to IPFS`}>
      <p>The payment service publishes the object on the content-addressed network, where everyone who has its CID can read it, and storage providers keep it for the time that your wallet pays for. The quote costs nothing.</p>
      <${Form} action=${ask} submit="Get a quote">
        <${Field} label="Days" input=${{ name: 'days', type: 'number', required: true, min: 1, max: 10000, defaultValue: 525 }} />
      <//>
      ${
        quote &&
        html`<${UploadQuote} quote=${quote} />
          <div class="buttons"><button type="button" class="main" disabled=${!quote.WithinCap} onClick=${() => setAsks(true)}>Upload…</button></div>`
      }
      ${asks && html`<${Publish} bucket=${bucket} name=${key} quote=${quote} onClose=${() => setAsks(false)} />`}
    <//>`
}

function UploadQuote({
  quote: { Bytes: bytes, DurationDays, Total, Currency, DailyCap, LeftToday, WithinCap, Warning },
}) {
  const price = Total === undefined ? 'not known: the service does not tell its prices' : `${Total} ${Currency}`
  return html`<h2>Quote</h2>
    <${Facts}
      facts=${[
        ['Object', html`<${Bytes} of=${bytes} />`],
        ['Days', DurationDays],
        ['Expected price', price],
        ...capFacts(DailyCap, LeftToday, Currency),
      ]}
    />
    ${Warning && html`<p class="quiet"><${Name} text=${Warning} /></p>`}
    ${!WithinCap && html`<p class="problem" role="status">The upload would exceed what may be spent today.</p>`}`
}

function Publish({ bucket, name, quote: { DurationDays, Total, Currency }, onClose }) {
  const action = async (signal) => {
    const request = { bucket, key: name, query: { 'x-pay': '' }, json: { DurationDays } }
    const { JobId } = await withClientToken(request, (token) =>
      sendJson(session.value, { ...request, headers: { ...token, prefer: 'wait=0' }, signal }),
    )
    goTo(['jobs', JobId])
  }
  const price = Total === undefined ? 'an unknown price' : `about ${Total} ${Currency}`
  return html`<${Confirm} title="Upload to IPFS" submit="Upload" action=${action} onClose=${onClose}>
    <p><strong><${Name} text=${name} /></strong> is published for ${DurationDays} days, for <strong>${price}</strong>, which your wallet pays afterwards: the screen of the object asks for it. What is published cannot be taken back, also if you close this dialog after the request was sent.</p>
  <//>`
}
