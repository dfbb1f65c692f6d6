import { send, sendJson } from '../lib/api.js'
import { formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { element } from '../lib/xml.js'
import { Copied } from '../parts/copy.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { State } from '../parts/state.js'
import { JobActions, RUNNING } from './job-actions.js'

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
}

/** After these, another deal mends it. */
const LOST = ['DealFailed', 'DealDoubted', 'DealEnding', 'DealEnded']
const LOST_STATES = /Expired|Slashed|Error|Failing|Reject|NotFound/

/** What happened to an object, and what mends it. @param facts of HEAD; @param changed is called after a restore */
export function LifeOf({ bucket, name, facts, changed }) {
  const client = session.value
  const request = { bucket, key: name, query: { 'x-deal-history': '', 'max-items': PAGE } }
  const history = useLoaded((signal) => sendJson(client, { ...request, signal }), [client, bucket, name, facts])
  const [restores, setRestores] = useState(false)
  const events = history.value?.History ?? []
  usePolling(
    events.some(({ JobStatus }) => RUNNING.has(JobStatus)),
    [history],
  )
  return html`<h2>History</h2>
    <${Loaded}
      of=${history}
      show=${({ History }) =>
        History.length === 0
          ? html`<p class="quiet">Nothing is known of this object.</p>`
          : html`<ol class="life" aria-label="History of this object">
              ${History.map((event) => html`<${Happened} event=${event} reload=${history.reload} />`)}
            </ol>`}
    />
    <div class="buttons">
      ${isCold(facts) && html`<button type="button" onClick=${() => setRestores(true)}>Restore…</button>`}
      ${needsDeal(events) && html`<a href=${linkTo(['buckets', bucket, 'archive'], { key: name })}>Make another deal</a>`}
    </div>
    ${restores && html`<${Restore} bucket=${bucket} name=${name} done=${changed} onClose=${() => setRestores(false)} />`}`
}

function isCold({ storageClass, headers }) {
  return ['GLACIER', 'DEEP_ARCHIVE'].includes(storageClass) && !headers.has('x-amz-restore')
}

/** True if the last deal of this version is lost, or about to be. */
function needsDeal(events) {
  const last = events.findLast(({ Event, EarlierVersion }) => Event.startsWith('Deal') && !EarlierVersion)
  return last !== undefined && (LOST.includes(last.Event) || LOST_STATES.test(last.State ?? ''))
}

function Happened({ event, reload }) {
  const { Event, Time, State: state, StorageClass, MinerId, Price, Until, Code, Message, JobId, JobStatus } = event
  return html`<li class=${event.EarlierVersion ? 'quiet' : undefined}>
    <time datetime=${Time}>${formatTime(Time)}</time>
    <div>
      <strong>${WORDS[Event] ?? html`<${Name} text=${Event} />`}</strong>
      ${state && html` <${State} of=${state} />`} ${event.EarlierVersion && ' (of the object that this one replaced)'}
      ${StorageClass && html` in the class <${Name} text=${StorageClass} />`}
      ${MinerId && html` with <${Name} text=${MinerId} /> for <${Name} text=${Price} /> per epoch`}
      ${Until && ` until ${formatTime(Until)}`}
      ${(Code || Message) && html`<p><${Name} text=${Message ?? ''} /> ${Code && html`(<${Name} text=${Code} />)`}</p>`}
      ${Event === 'DealMade' && html`<${Identifiers} event=${event} />`}
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

function Identifiers({ event: { DealCid, DataCid, PieceCid, RenewsDealCid } }) {
  return html`<dl class="facts">
    <div><dt>Deal</dt><dd><a href=${linkTo(['deals', DealCid])} class="cid"><${Name} text=${DealCid} /></a></dd></div>
    ${DataCid && html`<div><dt>CID</dt><dd><${Copied} text=${DataCid} what="the CID" /></dd></div>`}
    ${PieceCid && html`<div><dt>Piece CID</dt><dd><${Copied} text=${PieceCid} what="the piece CID" /></dd></div>`}
    ${RenewsDealCid && html`<div><dt>Renews</dt><dd><a href=${linkTo(['deals', RenewsDealCid])} class="cid"><${Name} text=${RenewsDealCid} /></a></dd></div>`}
  </dl>`
}

/** RestoreObject: https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html */
function Restore({ bucket, name, done, onClose }) {
  const action = async (values, signal) => {
    const days = values.get('days')
    const body = element('RestoreRequest', days ? [element('Days', days)] : [])
    const headers = { 'content-type': 'application/xml' }
    await send(session.value, { method: 'POST', bucket, key: name, query: { restore: '' }, headers, body, signal })
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
