import { send, sendJson } from '../lib/api.js'
import { formatCount, formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { without } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { inPlainWords, events as words } from '../lib/words.js'
import { element } from '../lib/xml.js'
import { Amount as Money } from '../parts/amount.js'
import { Copied } from '../parts/copy.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Known } from '../parts/known.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { JobActions, RUNNING } from './jobs.js'
import { PayUpload } from './pay-upload.js'
import { inCoin, tokenOf } from './wallet.js'

/** Events of a page; the server keeps a few hundred at most. */
const PAGE = 1000

/** After these, another deal mends it. */
const LOST = ['DealFailed', 'DealDoubted', 'DealEnding', 'DealEnded']
const LOST_STATES = /Expired|Slashed|Error|Failing|Reject|NotFound/

/** What happened to an object, and what mends it. @param facts of HEAD; @param changed is called after a restore */
export function LifeOf({ bucket, name, versionId, facts, changed }) {
  const client = session.value
  const history = useLoaded(
    (signal) => readHistory(client, { bucket, key: name, versionId }, signal),
    [client, bucket, name, facts],
  )
  const [restores, setRestores] = useState(false)
  const events = history.value?.events ?? []
  const running = events.map(({ JobStatus }) => JobStatus).filter((status) => RUNNING.has(status))
  usePolling(
    running.length > 0,
    [history],
    running.every((status) => status === 'Unknown'),
  )
  return html`<h2>History</h2>
    <${Loaded}
      of=${history}
      show=${({ events, unknown, token }) => html`${
        events.length === 0
          ? html`<p class="quiet">Nothing is known of this object.</p>`
          : html`<ol class="life" aria-label="History of this object">
              ${events.map((event) => html`<${Happened} event=${event} token=${token} unpaid=${isUnpaid(event, events)} reload=${history.reload} />`)}
            </ol>`
      }
      ${unknown && html`<p class="quiet">What was paid cannot be read now: <${Name} text=${unknown.message} /></p>`}`}
    />
    <div class="buttons">
      ${isCold(facts) && html`<button type="button" onClick=${() => setRestores(true)}>Restore…</button>`}
      ${needsUpload(events) && html`<a href=${linkTo(['buckets', bucket, 'pay'], { key: name })}>Upload to IPFS again</a>`}
      ${needsDeal(events) && html`<a href=${linkTo(['buckets', bucket, 'archive'], { key: name })}>Make another deal</a>`}
    </div>
    ${restores && html`<${Restore} bucket=${bucket} name=${name} versionId=${versionId} done=${changed} onClose=${() => setRestores(false)} />`}`
}

/** What the plugins for deals and for payments tell, in one order. A service of payments may be away. */
async function readHistory(client, place, signal) {
  const read = (call) => sendJson(client, { ...place, query: { [call]: '', 'max-items': PAGE }, signal })
  const [deals, payments] = await Promise.all([
    read('x-deal-history').catch(without('NotImplemented')),
    // Payments are about objects, whichever version was current.
    place.versionId === undefined &&
      read('x-pay-history').catch((unknown) => ({
        History: [],
        ...(unknown.code !== 'NotImplemented' && { unknown }),
      })),
  ])
  const found = payments ? payments.History : []
  // The service of payments tells amounts in the smallest unit of its coin, whose decimals the wallet tells.
  const isPaid = found.some(({ Amount }) => Amount)
  const wallet = isPaid
    ? await sendJson(client, { path: '/-/pay/v1/wallet', signal }).catch(() => undefined)
    : undefined
  const all = [...(deals?.History ?? []), ...found]
  const events = all.sort((one, other) => Date.parse(one.Time) - Date.parse(other.Time) || 0)
  return { events, unknown: payments?.unknown, token: tokenOf(wallet) }
}

/** True for an upload that waits for its payment. */
function isUnpaid({ Event, State: state, SourceFileUploadId: id }, events) {
  const isPaid = () => events.some((other) => other.Event === 'PaymentLocked' && other.SourceFileUploadId === id)
  return Event === 'Uploaded' && state === 'Pending' && !isPaid()
}

function needsUpload(events) {
  const last = events.findLast(({ Event, EarlierVersion }) => /^(Upload|Payment)/.test(Event) && !EarlierVersion)
  return ['UploadFailed', 'PaymentRefunded'].includes(last?.Event)
}

function isCold({ storageClass, headers }) {
  return ['GLACIER', 'DEEP_ARCHIVE'].includes(storageClass) && !headers.has('x-amz-restore')
}

/** True if the last deal of this version is lost, or about to be. */
function needsDeal(events) {
  const last = events.findLast(({ Event, EarlierVersion }) => Event.startsWith('Deal') && !EarlierVersion)
  return last !== undefined && (LOST.includes(last.Event) || LOST_STATES.test(last.State ?? ''))
}

function Happened({ event, token, unpaid, reload }) {
  const { Event, Time, State: state, StorageClass, MinerId, Price, Until, Code, Message, JobId, JobStatus } = event
  const { DurationDays: days, Amount, TokenName } = event
  return html`<li class=${event.EarlierVersion ? 'quiet' : undefined}>
    <time datetime=${Time}>${formatTime(Time)}</time>
    <div>
      <strong>${words[Event] ?? html`<${Name} text=${Event} />`}</strong>
      ${state && html` <${Known} kind=${/^(Upload|Payment)/.test(Event) && Event !== 'UploadDealState' ? 'upload' : 'deal'} of=${state} />`} ${event.EarlierVersion && ' (of the object that this one replaced)'}
      ${StorageClass && html` in the class <${Name} text=${StorageClass} />`}
      ${days && ` for ${formatCount(days, 'day')}`}
      ${Amount && html` (${inCoin(Amount, TokenName, token)})`}
      ${MinerId && html` with <${Name} text=${MinerId} />`} ${Price && html` for <${Money} of=${Price} unit="fil per epoch" />`}
      ${Until && ` until ${formatTime(Until)}`}
      ${(Code || Message) && html`<p><${Name} text=${inPlainWords(Message ?? '')} /> ${Code && html`(<${Name} text=${Code} />)`}</p>`}
      ${unpaid && html`<${Unpaid} event=${event} done=${reload} />`}
      ${['DealMade', 'UploadDealMade', 'Uploaded', 'PaymentLocked'].includes(Event) && html`<${Identifiers} event=${event} />`}
      ${
        JobId &&
        html`<p>
          <a href=${linkTo(['jobs', JobId])}>Job <${Name} text=${JobId} /></a>
          ${JobStatus && html` <${Known} kind="job" of=${JobStatus} />`} ${RUNNING.has(JobStatus) && event.Phase && html`<${Name} text=${event.Phase} />`}
        </p>`
      }
      ${JobId && html`<${JobActions} id=${JobId} status=${JobStatus} done=${reload} />`}
    </div>
  </li>`
}

/** An upload that waits for its payment. */
function Unpaid({ event: { SourceFileUploadId: id }, done }) {
  const [pays, setPays] = useState(false)
  return html`<p>The wallet has not paid yet. <button type="button" onClick=${() => setPays(true)}>Pay…</button></p>
    ${pays && html`<${PayUpload} id=${id} name=${`upload ${id}`} done=${done} onClose=${() => setPays(false)} />`}`
}

function Identifiers({ event }) {
  const { Event, DealCid, DataCid = event.PayloadCid, PieceCid, RenewsDealCid, SourceFileUploadId, TxHash } = event
  // Deals of the payment service are in no list of this server.
  const deal =
    Event === 'DealMade'
      ? html`<a href=${linkTo(['deals', DealCid])} class="cid"><${Middle} text=${DealCid} /></a>`
      : html`<${Copied} text=${DealCid} what="the deal" />`
  return html`<dl class="facts">
    ${DealCid && html`<div><dt>Deal</dt><dd>${deal}</dd></div>`}
    ${SourceFileUploadId && html`<div><dt>Upload</dt><dd>${SourceFileUploadId}</dd></div>`}
    ${TxHash && html`<div><dt>Transaction</dt><dd><${Copied} text=${TxHash} what="the transaction" /></dd></div>`}
    ${DataCid && html`<div><dt>CID</dt><dd><${Copied} text=${DataCid} what="the CID" /></dd></div>`}
    ${PieceCid && html`<div><dt>Piece CID</dt><dd><${Copied} text=${PieceCid} what="the piece CID" /></dd></div>`}
    ${RenewsDealCid && html`<div><dt>Renews</dt><dd><a href=${linkTo(['deals', RenewsDealCid])} class="cid"><${Middle} text=${RenewsDealCid} /></a></dd></div>`}
  </dl>`
}

/** RestoreObject: https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html */
function Restore({ bucket, name, versionId, done, onClose }) {
  const action = async (values, signal) => {
    const days = values.get('days')
    const body = element('RestoreRequest', days ? [element('Days', days)] : [])
    const headers = { 'content-type': 'application/xml' }
    await send(session.value, {
      method: 'POST',
      bucket,
      key: name,
      versionId,
      query: { restore: '' },
      headers,
      body,
      signal,
    })
    notify('The restore was requested.')
    onClose()
    done()
  }
  return html`<${Dialog} title="Restore object" onClose=${onClose}>
    <${Form} action=${action} submit="Restore" onCancel=${onClose}>
      <p>The gateway retrieves the bytes from a deal that holds them. That can take hours, and costs what the provider charges for a retrieval.</p>
      <${Field} label="Days" hint="How long the copy stays on the gateway. Empty: for good." input=${{ name: 'days', type: 'number', min: 1, max: 36_500 }} />
    <//>
  <//>`
}
