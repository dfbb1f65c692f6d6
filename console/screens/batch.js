import { sendJson } from '../lib/api.js'
import { csvRows } from '../lib/csv.js'
import { formatBytes, formatCount, formatSpan } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { readText } from '../lib/s3-text.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Confirm } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Field } from '../parts/form.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'
import { Time } from '../parts/time.js'
import { OPERATIONS } from './batch-operations.js'
import { downloadObject } from './object-actions.js'

const ENDED = ['Complete', 'Failed', 'Cancelled']
const STATES = ['Suspended', 'Active', 'Paused', ...ENDED]
/** Of the files of a report, bytes and rows that are shown. */
const SHOWN_BYTES = 256 * 1024
const SHOWN_ROWS = 500

/** All batch jobs, the newest first. */
export function BatchJobs({ query }) {
  const status = query.get('status') ?? ''
  const jobs = usePages({ path: '/-/batch/v1', query: { 'max-items': 100, status: status || undefined } }, 'Jobs')
  const start = html`<a class="button main" href=${linkTo(['batch', 'new'])}>New batch job</a>`
  const actions = html`<button type="button" onClick=${jobs.reload}>Refresh</button>${start}`
  usePolling(
    jobs.value?.rows.some(({ Status }) => isBusy(Status)),
    [jobs],
  )
  return html`<${Page} title="Batch jobs" actions=${actions}>
    <div class="choice">
      <${Field} label="State" kind="select" input=${{ value: status, onChange: ({ target }) => goTo(['batch'], { status: target.value }) }}>
        <option value="">All</option>
        ${STATES.map((state) => html`<option value=${state}>${wordOf(state)}</option>`)}
      <//>
    </div>
    <${Loaded}
      of=${jobs}
      show=${({ rows, next }) => html`<${Table}
          caption="Batch jobs"
          rows=${rows}
          keyOf=${({ JobId }) => JobId}
          columns=${columns}
          empty=${html`<${Empty} title=${status ? 'There is no such batch job.' : 'There is no batch job yet.'} actions=${start}>A batch job does one thing to many objects: tag, copy, delete, restore, archive, verify.<//>`}
        />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

const columns = [
  {
    name: 'Job',
    cell: ({ JobId, Operation, DryRun }) =>
      html`<a href=${linkTo(['batch', JobId])}>${OPERATIONS[Operation]?.text ?? html`<${Name} text=${Operation} />`}${DryRun && ' (dry run)'}</a>`,
  },
  {
    name: 'Objects of',
    rest: true,
    cell: ({ Resource, Description }) =>
      html`<${Middle} text=${Resource} />${Description && html`<${Middle} text=${Description} />`}`,
  },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${State} of=${wordOf(Status)} />` },
  {
    name: 'Done',
    number: true,
    cell: ({ NumberOfTasksSucceeded: done, TotalNumberOfTasks: all }) =>
      `${done.toLocaleString()}\u00a0of\u00a0${all.toLocaleString()}`,
  },
  {
    name: 'Failed',
    number: true,
    by: ({ NumberOfTasksFailed }) => NumberOfTasksFailed,
    cell: ({ NumberOfTasksFailed: failed }) => failed.toLocaleString(),
  },
  {
    name: 'Created',
    by: ({ CreationTime }) => CreationTime,
    cell: ({ CreationTime }) => html`<${Time} of=${CreationTime} />`,
  },
]

function isBusy(status) {
  return !ENDED.includes(status) && status !== 'Suspended' && status !== 'Paused'
}

function wordOf(status) {
  return status === 'Suspended' ? 'Waits\u00a0for\u00a0you' : status
}

/** One batch job: what it found, its confirmation, progress and report. */
export function BatchJob({ params: { id } }) {
  const client = session.value
  const path = `/-/batch/v1/${uriEncode(id)}`
  const job = useLoaded((signal) => sendJson(client, { path, signal }), [client, id])
  const [dialog, setDialog] = useState()
  // What was asked for takes effect later: until then, a job that waits or pauses is read again, too.
  const [acted, setActed] = useState()
  const status = job.value?.Status
  usePolling(status !== undefined && (isBusy(status) || acted === status), [job])
  const act = async (what, said, signal) => {
    await sendJson(client, { method: 'POST', path: `${path}/${what}`, json: {}, signal })
    notify(said)
    setActed(status)
    job.reload()
  }
  const title = OPERATIONS[job.value?.Operation]?.text ?? 'Batch job'
  return html`<${Crumbs} links=${[{ href: linkTo(['batch']), text: 'Batch jobs' }, { href: linkTo(['batch', id]), text: html`<${Name} text=${id} />` }]} />
    <${Page} title=${`${title} ${id}`} heading=${title}>
      <${Loaded}
        of=${job}
        show=${(value) => html`<${Actions} job=${value} open=${setDialog} act=${act} />
          <${Progress} job=${value} />
          <${Summary} job=${value} />
          ${value.Failures.length > 0 && html`<h2>What failed</h2><${Failures} of=${value} />`}
          ${value.Report && html`<h2>Report</h2><${Report} of=${value.Report} />`}`}
      />
      ${dialog && html`<${dialog} job=${job.value} act=${act} onClose=${() => setDialog(undefined)} />`}
    <//>`
}

function Actions({ job: { Status, DryRun }, open, act }) {
  const now = (what, text, said) => html`<${Now} text=${text} action=${() => act(what, said)} />`
  if (ENDED.includes(Status)) return DryRun ? html`<p>This was a dry run: nothing was changed.</p>` : undefined
  return html`<div class="buttons">
    ${Status === 'Suspended' && html`<button type="button" class="main" onClick=${() => open(() => Run)}>Run it…</button>`}
    ${Status === 'Paused' && now('resume', 'Go on', 'The job goes on.')}
    ${Status === 'Active' && now('pause', 'Pause', 'The job pauses behind the tasks in progress.')}
    <button type="button" onClick=${() => open(() => Cancel)}>Cancel…</button>
  </div>`
}

/** A button whose action needs no question; its error is shown beside it. */
function Now({ text, action }) {
  return html`<button type="button" onClick=${() => action().catch((error) => notify(error.message, 'failed'))}>${text}</button>`
}

function Run({ job, act, onClose }) {
  const { does = 'runs', danger } = OPERATIONS[job.Operation] ?? {}
  const count = job.TotalNumberOfTasks
  return html`<${Confirm}
    title=${`${OPERATIONS[job.Operation]?.text ?? job.Operation}: ${formatCount(count, 'object')}`}
    word=${danger ? String(count) : undefined}
    submit=${job.Price ? `Pay up to ${job.Price} FIL` : 'Run it'}
    action=${(signal) => act('run', 'The job runs.', signal)}
    onClose=${onClose}
  >
    <p>The job ${does}: ${formatCount(count, 'object')}${job.Bytes === undefined ? '' : `, ${formatBytes(job.Bytes)}`}.${danger && ' This cannot be undone.'}</p>
    <${Facts} facts=${[['Price of all deals', job.Price && `${job.Price} FIL, within the caps of the day`], ['Would fail', job.NotEstimated > 0 ? formatCount(job.NotEstimated, 'object') : undefined]]} />
  <//>`
}

function Cancel({ act, onClose }) {
  return html`<${Confirm} title="Cancel the job" submit="Cancel the job" action=${(signal) => act('cancel', 'The job ends behind the tasks in progress.', signal)} onClose=${onClose}>
    <p>What was done stays done; the report has it.</p>
  <//>`
}

function Progress({
  job: { Status, TotalNumberOfTasks: all, NumberOfTasksSucceeded: done, NumberOfTasksFailed: failed },
}) {
  if (all === 0)
    return html`<p role="status">${Status === 'Complete' ? 'No object was found.' : 'Objects are being found.'}</p>`
  if (Status === 'Suspended')
    return html`<p role="status">${formatCount(all, 'object')} ${all === 1 ? 'was' : 'were'} found. Nothing has been done yet: the job runs when you say so.</p>`
  const ended = done + failed
  return html`<div>
    <progress max=${all} value=${ended} aria-label="Objects done"></progress>
    <p role="status">${ended.toLocaleString()} of ${formatCount(all, 'object')}${failed > 0 ? `, ${failed.toLocaleString()} failed` : ''}</p>
  </div>`
}

function Summary({ job }) {
  const { Resource: resource } = job
  return html`<${Facts}
    facts=${[
      ['State', html`<${State} of=${wordOf(job.Status)} />`],
      ['Waits for', job.Waiting],
      ['Description', job.Description],
      ['Objects of', resource],
      ['Bytes', job.Bytes === undefined ? undefined : formatBytes(job.Bytes)],
      ['Price of all deals', job.Price && `${job.Price} FIL`],
      ['Would fail', job.NotEstimated === undefined ? undefined : formatCount(job.NotEstimated, 'object')],
      ['Created', html`<${Time} of=${job.CreationTime} exact />`],
      ['Ended', job.TerminationTime && html`<${Time} of=${job.TerminationTime} exact />`],
      ['At work for', job.ElapsedTimeInActiveSeconds > 0 ? formatSpan(job.ElapsedTimeInActiveSeconds) : undefined],
      ...job.FailureReasons.map(({ FailureCode, FailureReason }) => [
        'Failed because',
        `${FailureReason} (${FailureCode})`,
      ]),
      ['As a job', html`<a href=${linkTo(['jobs', job.JobId])}>Log and retry</a>`],
    ]}
  />`
}

function Failures({ of: { Failures, NumberOfTasksFailed: all } }) {
  return html`${all > Failures.length && html`<p class="quiet">The first ${Failures.length} of ${all.toLocaleString()}; the report has all.</p>`}
    <${Table} caption="Failed tasks" rows=${Failures} keyOf=${({ Bucket, Key, VersionId }) => `${Bucket}/${Key}/${VersionId}`} columns=${failureColumns} />`
}

const failureColumns = [
  {
    name: 'Key',
    rest: true,
    cell: ({ Bucket, Key }) =>
      html`<a href=${linkTo(['buckets', Bucket, 'object'], { key: Key })}><${Middle} text=${`${Bucket}/${Key}`} /></a>`,
  },
  { name: 'Error', by: ({ ErrorCode }) => ErrorCode, cell: ({ ErrorCode }) => ErrorCode },
  { name: 'Message', cell: ({ Message }) => Message },
]

/** The files of a report: their first rows, and all of each as a download. */
function Report({ of: { Bucket: bucket, Key: key } }) {
  const client = session.value
  const files = useLoaded(
    async (signal) => JSON.parse((await readText(client, bucket, key, { bytes: SHOWN_BYTES }, signal)).text).Results,
    [client, bucket, key],
  )
  return html`<${Loaded}
    of=${files}
    show=${(all) =>
      all.map(
        ({ TaskExecutionStatus: status, Bucket: from, Key: file }) => html`<${Folded} title=${`Tasks that ${status}`}>
        <div class="buttons"><button type="button" onClick=${() => downloadObject(from, file)}>Download as CSV</button></div>
        <${Rows} bucket=${from} file=${file} />
      <//>`,
      )}
  />`
}

function Rows({ bucket, file }) {
  const client = session.value
  const rows = useLoaded(
    async (signal) => {
      const { text, whole } = await readText(client, bucket, file, { bytes: SHOWN_BYTES }, signal)
      const all = csvRows(text, { cut: !whole })
      return { all: all.slice(0, SHOWN_ROWS), more: !whole || all.length > SHOWN_ROWS }
    },
    [client, bucket, file],
  )
  return html`<${Loaded}
    of=${rows}
    show=${({ all, more }) => html`${more && html`<p class="quiet">The first ${formatCount(all.length, 'row')}.</p>`}
      <${Table} caption=${`Rows of ${file.slice(-12)}`} rows=${all} keyOf=${([from, key, version]) => `${from}/${key}/${version}`} columns=${reportColumns} />`}
  />`
}

const reportColumns = [
  {
    name: 'Key',
    rest: true,
    cell: ([bucket, key, version]) =>
      html`<${Middle} text=${`${bucket}/${decoded(key)}${version ? ` (${version})` : ''}`} />`,
  },
  { name: 'State', cell: ([, , , status]) => html`<${State} of=${status === 'succeeded' ? 'Complete' : 'Failed'} />` },
  { name: 'Status', number: true, cell: (row) => row[4] },
  { name: 'Error', cell: (row) => row[5] },
  { name: 'Message', cell: (row) => row[6] },
]

function decoded(key) {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
