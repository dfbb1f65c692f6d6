import { sendJson } from '../lib/api.js'
import { formatCount, formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Confirm } from '../parts/dialog.js'
import { Field } from '../parts/form.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'

const STATES = ['New', 'Active', 'Unknown', 'Cancelling', 'Complete', 'Failed', 'Cancelled']

/** All jobs, the newest first. */
export function Jobs({ query }) {
  const status = query.get('status') ?? ''
  const jobs = usePages({ path: '/-/jobs/v1', query: { 'max-items': 100, status: status || undefined } }, 'Jobs')
  return html`<${Page} title="Jobs">
    <${Field} label="State" kind="select" input=${{ value: status, onChange: (event) => goTo(['jobs'], { status: event.target.value }) }}>
      <option value="">All</option>
      ${STATES.map((state) => html`<option value=${state}>${state}</option>`)}
    <//>
    <div class="buttons"><button type="button" onClick=${jobs.reload}>Refresh</button></div>
    <${Loaded}
      of=${jobs}
      show=${({
        rows,
        next,
      }) => html`<p class="quiet">${formatCount(rows.length, 'job')}${next ? ' on this page' : ''}</p>
        <${Table} caption="Jobs" rows=${rows} keyOf=${({ JobId }) => JobId} columns=${columns} empty="There is no such job." />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

const columns = [
  { name: 'Job', cell: ({ JobId }) => html`<a href=${linkTo(['jobs', JobId])}><${Name} text=${JobId} /></a>` },
  { name: 'Call', by: ({ Operation }) => Operation, cell: ({ Operation }) => html`<${Name} text=${Operation} />` },
  { name: 'For', by: ({ Resource }) => Resource ?? '', cell: ({ Resource }) => html`<${Name} text=${Resource} />` },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${State} of=${Status} />` },
  { name: 'Begun', by: ({ CreationTime }) => CreationTime, cell: ({ CreationTime }) => formatTime(CreationTime) },
]

/** One job with its progress, its log and what can be done with it. */
export function Job({ params: { id } }) {
  const client = session.value
  const path = `/-/jobs/v1/${uriEncode(id)}`
  const job = useLoaded((signal) => sendJson(client, { path, signal }), [client, id])
  const log = useLoaded((signal) => sendJson(client, { path: `${path}/log`, signal }), [client, id])
  const running = RUNNING.has(job.value?.Status)
  const again = () => {
    job.reload()
    log.reload()
  }
  usePolling(running, [job, log])
  return html`<${Crumbs} links=${[{ href: linkTo(['jobs']), text: 'Jobs' }, { href: linkTo(['jobs', id]), text: html`<${Name} text=${id} />` }]} />
    <${Page} title=${`Job ${id}`} heading=${html`Job <${Name} text=${id} />`}>
      <${Loaded}
        of=${job}
        show=${(value) => html`<${JobActions} id=${id} status=${value.Status} done=${again} />
          <${Summary} job=${value} />
          ${value.Result && html`<h2>Result</h2><${Answer} value=${value.Result} />`}`}
      />
      <h2>Log</h2>
      <${Loaded} of=${log} show=${(value) => html`<${Answer} value=${value} title="Log" />`} />
    <//>`
}

function Summary({ job }) {
  const {
    Bytes: bytes,
    TotalNumberOfTasks: tasks = 0,
    NumberOfTasksSucceeded: done = 0,
    NumberOfTasksFailed: failed = 0,
  } = job.ProgressSummary ?? {}
  return html`<${Facts}
    facts=${[
      ['State', html`<${State} of=${job.Status} />`],
      ['Phase', html`<${Name} text=${job.Phase} />`],
      ['Call', html`<${Name} text=${job.Operation} />`],
      ['For', job.Resource && html`<${Name} text=${job.Resource} />`],
      ['Tasks', tasks > 0 ? `${done} of ${tasks} done${failed > 0 ? `, ${failed} failed` : ''}` : undefined],
      [
        'Bytes',
        bytes?.Total
          ? html`<progress max=${bytes.Total} value=${bytes.Done} aria-label="Bytes"></progress> ${Math.floor((100 * bytes.Done) / bytes.Total)} %`
          : undefined,
      ],
      ['Begun', formatTime(job.CreationTime)],
      ['Changed', formatTime(job.LastUpdate)],
      ...(job.FailureReasons ?? []).map((reason) => ['Failed because', html`<${Answer} value=${reason} />`]),
    ]}
  />`
}

export const RUNNING = new Set(['New', 'Active', 'Unknown', 'Cancelling'])

/** The buttons for what can be done with a job in its state. @param done is called when the server has accepted it */
export function JobActions({ id, status, done }) {
  const [dialog, setDialog] = useState()
  if (status === undefined || status === 'Complete') return null
  const act = async (what, signal, json) => {
    const path = `/-/jobs/v1/${uriEncode(id)}/${what}`
    await sendJson(session.value, { method: 'POST', path, json, signal })
    notify(`The request to ${what} the job was accepted.`)
    done()
  }
  const button = (View, text) => html`<button type="button" onClick=${() => setDialog({ View })}>${text}</button>`
  return html`<div class="buttons">
      ${RUNNING.has(status) && status !== 'Unknown' ? button(Cancel, 'Cancel…') : button(Retry, 'Retry…')}
      ${status === 'Unknown' && button(Resolve, 'It has failed…')}
    </div>
    ${dialog && html`<${dialog.View} act=${act} onClose=${() => setDialog(undefined)} />`}`
}

function Cancel({ act, onClose }) {
  return html`<${Confirm} title="Cancel job" submit="Cancel the job" action=${(signal) => act('cancel', signal)} onClose=${onClose}>
    <p>The job ends before its next step. What it has already sent, such as a deal, stays. A cancelled job can be retried.</p>
  <//>`
}

function Retry({ act, onClose }) {
  return html`<${Confirm} title="Retry job" submit="Run it again" action=${(signal) => act('retry', signal)} onClose=${onClose}>
    <p>The job runs again with the same request, and may cost money. An unknown job may have taken effect: retry it only if you know that it did nothing.</p>
  <//>`
}

function Resolve({ act, onClose }) {
  const failed = { Status: 'Failed', FailureCode: 'ResolvedByOperator' }
  return html`<${Confirm} title="Settle job" submit="It has failed" action=${(signal) => act('resolve', signal, failed)} onClose=${onClose}>
    <p>The outcome of this job is unknown. State that it has failed if you know that nothing was made or paid. Its result can be recorded with the call ResolveJob.</p>
  <//>`
}
