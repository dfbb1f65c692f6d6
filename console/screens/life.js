import { send, sendJson } from '../lib/api.js'
import { formatCount, formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { without } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { element } from '../lib/xml.js'
import { Copied } from '../parts/copy.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { State } from '../parts/state.js'
import { JobActions, RUNNING } from './jobs.js'

/** Events of a page; the server keeps a few hundred at most. */
const PAGE = 1000

const WORDS = {
  Stored: 'Stored',
  OfflineDealAwaited: 'Waits for the next offline deal of the bucket',
  DealRequested: 'A deal was requested',
  DealFailed: 'The deal failed',
  DealMade: 'A deal was made',
  DealState: 'The network reported',
  DealVerified: 'The provider delivered the whole object unchanged',
  DealDoubted: 'The provider did not deliver the object',
  DealEnding: 'The deal is about to end',
  DealEnded: 'The deal has ended',
  DealRetired: 'Newer backups have replaced the deal',
  Evicted: 'The copy on the gateway was evicted: the bytes are only in deals',
  EvictionRefused: 'The gateway kept its copy',
  RestoreRequested: 'A restore was requested',
  RestoreFailed: 'The restore failed',
  RestoreProlonged: 'The restored copy stays longer',
  Restored: 'Restored',
  UploadRequested: 'An upload to IPFS was requested',
  UploadFailed: 'The upload to IPFS failed',
  Uploaded: 'Uploaded to IPFS, and now',
  PaymentLocked: 'The payment was locked',
  UploadDealMade: 'The payment service made a deal',
  UploadDealState: 'The deal of the payment service was reported as',
  PaymentUnlocked: 'The provider was paid',
  PaymentRefunded: 'The payment went back to the wallet',
}

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
      show=${({ events, unknown }) => html`${
        events.length === 0
          ? html`<p class="quiet">Nothing is known of this object.</p>`
          : html`<ol class="life" aria-label="History of this object">
              ${events.map((event) => html`<${Happened} event=${event} unpaid=${isUnpaid(event, events)} reload=${history.reload} />`)}
            </ol>`
      }
      ${unknown && html`<p class="quiet">What was paid cannot be read now: <${Name} text=${unknown.message} /></p>`}`}
    />
    <div class="buttons">
      <button type="button" onClick=${history.reload}>Refresh</button>
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
  const all = [...(deals?.History ?? []), ...(payments ? payments.History : [])]
  const events = all.sort((one, other) => Date.parse(one.Time) - Date.parse(other.Time) || 0)
  return { events, unknown: payments?.unknown }
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

function Happened({ event, unpaid, reload }) {
  const { Event, Time, State: state, StorageClass, MinerId, Price, Until, Code, Message, JobId, JobStatus } = event
  const { DurationDays: days, Amount, TokenName } = event
  return html`<li class=${event.EarlierVersion ? 'quiet' : undefined}>
    <time datetime=${Time}>${formatTime(Time)}</time>
    <div>
      <strong>${WORDS[Event] ?? html`<${Name} text=${Event} />`}</strong>
      ${state && html` <${State} of=${state} />`} ${event.EarlierVersion && ' (of the object that this one replaced)'}
      ${StorageClass && html` in the class <${Name} text=${StorageClass} />`}
      ${days && ` for ${formatCount(days, 'day')}`}
      ${Amount && html` (<${Name} text=${Amount} /> smallest units of <${Name} text=${TokenName} />)`}
      ${MinerId && html` with <${Name} text=${MinerId} />`} ${Price && html` for <${Name} text=${Price} /> per epoch`}
      ${Until && ` until ${formatTime(Until)}`}
      ${(Code || Message) && html`<p><${Name} text=${Message ?? ''} /> ${Code && html`(<${Name} text=${Code} />)`}</p>`}
      ${unpaid && html`<p>The wallet has not paid yet: <${Copied} text=${`dealgate wallet pay ${event.SourceFileUploadId} --password -`} what="the command" /></p>`}
      ${['DealMade', 'UploadDealMade', 'Uploaded', 'PaymentLocked'].includes(Event) && html`<${Identifiers} event=${event} />`}
      ${
        JobId &&
        html`<p>
          <a href=${linkTo(['jobs', JobId])}>Job <${Name} text=${JobId} /></a>
          ${JobStatus && html` <${State} of=${JobStatus} />`} ${RUNNING.has(JobStatus) && event.Phase && html`<${Name} text=${event.Phase} />`}
        </p>`
      }
      ${JobId && html`<${JobActions} id=${JobId} status=${JobStatus} done=${reload} />`}
    </div>
  </li>`
}

function Identifiers({ event }) {
  const { Event, DealCid, DataCid = event.PayloadCid, PieceCid, RenewsDealCid, SourceFileUploadId, TxHash } = event
  // Deals of the payment service are in no list of this server.
  const deal =
    Event === 'DealMade'
      ? html`<a href=${linkTo(['deals', DealCid])} class="cid"><${Name} text=${DealCid} /></a>`
      : html`<${Copied} text=${DealCid} what="the deal" />`
  return html`<dl class="facts">
    ${DealCid && html`<div><dt>Deal</dt><dd>${deal}</dd></div>`}
    ${SourceFileUploadId && html`<div><dt>Upload</dt><dd>${SourceFileUploadId}</dd></div>`}
    ${TxHash && html`<div><dt>Transaction</dt><dd><${Copied} text=${TxHash} what="the transaction" /></dd></div>`}
    ${DataCid && html`<div><dt>CID</dt><dd><${Copied} text=${DataCid} what="the CID" /></dd></div>`}
    ${PieceCid && html`<div><dt>Piece CID</dt><dd><${Copied} text=${PieceCid} what="the piece CID" /></dd></div>`}
    ${RenewsDealCid && html`<div><dt>Renews</dt><dd><a href=${linkTo(['deals', RenewsDealCid])} class="cid"><${Name} text=${RenewsDealCid} /></a></dd></div>`}
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
