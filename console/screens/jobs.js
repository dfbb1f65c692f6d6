import { sendJson } from '../lib/api.js'
import { formatCount, formatMoment, visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Answer } from '../parts/answer.js'
import { Confirm, Dialog } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Check, Field, Form } from '../parts/form.js'
import { Known, stateFacts, stateOptions } from '../parts/known.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Progress } from '../parts/measure.js'
import { Middle, Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { Facts, Table } from '../parts/table.js'
import { Time } from '../parts/time.js'

const STATES = ['New', 'Active', 'Unknown', 'Cancelling', 'Complete', 'Failed', 'Cancelled']

/** All jobs, the newest first. */
export function Jobs({ query }) {
  const status = query.get('status') ?? ''
  const jobs = usePages({ path: '/-/jobs/v1', query: { 'max-items': 100, status: status || undefined } }, 'Jobs')
  const refresh = html`<button type="button" onClick=${jobs.reload}>Refresh</button>`
  return html`<${Page} title="Jobs" actions=${refresh}>
    <div class="choice">
      <${Field} label="State" kind="select" input=${{ value: status, onChange: (event) => goTo(['jobs'], { status: event.target.value }) }}>
        <option value="">All</option>
        ${stateOptions('job', STATES, status)}
      <//>
    </div>
    <${Loaded}
      of=${jobs}
      show=${({
        rows,
        next,
      }) => html`<p class="quiet">${formatCount(rows.length, 'job')}${next ? ' on this page' : ''}</p>
        <${Table} caption="Jobs" rows=${rows} keyOf=${({ JobId }) => JobId} columns=${columns} empty=${html`<${Empty} title=${status ? 'There is no such job.' : 'There is no job yet.'}>Work that takes long, such as a deal or a restore, runs as a job, and is listed here.<//>`} />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

const columns = [
  {
    name: 'Job',
    cell: ({ JobId }) => html`<a href=${linkTo(['jobs', JobId])} class="cid"><${Middle} text=${JobId} /></a>`,
  },
  { name: 'Call', by: ({ Operation }) => Operation, cell: ({ Operation }) => html`<${Name} text=${Operation} />` },
  {
    name: 'For',
    rest: true,
    by: ({ Resource }) => Resource ?? '',
    cell: ({ Resource }) => html`<${Middle} text=${Resource ?? ''} />`,
  },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${Known} kind="job" of=${Status} />` },
  {
    name: 'Begun',
    by: ({ CreationTime }) => CreationTime,
    cell: ({ CreationTime }) => html`<${Time} of=${CreationTime} />`,
  },
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
    <${Page} title=${`Job ${id}`} heading=${html`Job <${Name} text=${id} />`} actions=${html`<button type="button" onClick=${again}>Refresh</button>`}>
      <${Loaded}
        of=${job}
        show=${(value) => html`<${JobActions} id=${id} status=${value.Status} done=${again} />
          <${Summary} job=${value} />
          ${value.Result && html`<h2>Result</h2><${Next} of=${value.Result} /><${Answer} value=${value.Result} />`}`}
      />
      <h2>Log</h2>
      <${Loaded} of=${log} show=${({ Lines: lines }) => html`<${Table} caption="Log" rows=${lines.map((line, at) => ({ at, ...line }))} keyOf=${({ at }) => at} columns=${logColumns} empty="The job has written nothing yet." />`} />
    <//>`
}

const logColumns = [
  { name: 'Time', cell: (line) => html`<time datetime=${line.Time}>${formatMoment(line.Time)}</time>` },
  { name: 'Text', rest: true, cell: ({ Text }) => html`<${Name} text=${Text} />` },
]

/** Where a person goes on from the result of a job. */
function Next({ of: { Deal: deal, Task: task, SourceFileUploadId: upload, Status } }) {
  const links = [
    deal?.DealCid && [linkTo(['deals', deal.DealCid]), 'Follow the deal'],
    task?.TaskUuid && [linkTo(['tasks', task.TaskUuid]), 'Follow the task and its bids'],
    upload && [linkTo(['payments', 'uploads']), Status === 'Pending' ? 'Pay the upload' : 'Follow the upload'],
  ].filter(Boolean)
  if (links.length === 0) return undefined
  return html`<div class="buttons">${links.map(([href, text]) => html`<a class="button" href=${href}>${text}</a>`)}</div>`
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
      ...stateFacts('job', job.Status),
      ['Phase', html`<${Name} text=${job.Phase} />`],
      ['Call', html`<${Name} text=${job.Operation} />`],
      ['For', job.Resource && html`<${Name} text=${job.Resource} />`],
      ['Tasks', tasks > 0 ? `${done} of ${tasks} done${failed > 0 ? `, ${failed} failed` : ''}` : undefined],
      [
        'Bytes',
        bytes?.Total
          ? html`<${Progress} max=${bytes.Total} value=${bytes.Done} label="Bytes" text=${`${Math.floor((100 * bytes.Done) / bytes.Total)} %`} />`
          : undefined,
      ],
      ['Begun', html`<${Time} exact of=${job.CreationTime} />`],
      ['Changed', html`<${Time} exact of=${job.LastUpdate} />`],
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

/** The recurring backups of all buckets, with the next one and the outcome of the last one. */
export function Schedules({ query }) {
  const bucket = query.get('bucket') || undefined
  const schedules = usePages({ path: '/-/deal/v1/schedules', query: { bucket, 'max-items': 100 } }, 'Schedules')
  const [dialog, setDialog] = useState()
  const done = (text) => {
    notify(text)
    schedules.reload()
  }
  const add = html`<button type="button" class="main" onClick=${() => setDialog({ View: Add, of: { Bucket: bucket } })}>Add schedule</button>`
  const actions = html`<button type="button" onClick=${schedules.reload}>Refresh</button>${add}`
  return html`<${Page} title="Schedules" actions=${actions}>
    <p class="quiet">Backups that the server makes by itself, as deals that it pays for, within the caps of the bucket and the server.</p>
    ${bucket && html`<p>Only those of <strong><${Name} text=${bucket} /></strong>: <a href=${linkTo(['schedules'])}>show those of all buckets</a></p>`}
    <${Loaded}
      of=${schedules}
      show=${({
        rows,
        next,
      }) => html`<${Table} caption="Schedules" rows=${rows} keyOf=${({ Bucket, Id }) => `${Bucket}/${Id}`} columns=${scheduleColumns} menu=${menuWith((View, of) => setDialog({ View, of }))} empty=${html`<${Empty} title="There is no schedule." actions=${add}>Add one, and the server backs up a bucket by itself, as often as you say.<//>`} />
        <${PageLinks} next=${next} />`}
    />
    ${dialog && html`<${dialog.View} of=${dialog.of} done=${done} onClose=${() => setDialog(undefined)} />`}
  <//>`
}

const scheduleColumns = [
  { name: 'Schedule', by: ({ Id }) => Id, cell: ({ Id }) => html`<${Name} text=${Id} />` },
  {
    name: 'Backs up',
    by: ({ Bucket }) => Bucket,
    cell: ({ Bucket, Prefix = '' }) =>
      html`<a href=${linkTo(['buckets', Bucket, 'objects'], { prefix: Prefix })}><${Name} text=${`${Bucket}/${Prefix}`} /></a>`,
  },
  {
    name: 'When',
    cell: ({ Cron, TimeZone, Enabled }) => html`<code>${Cron}</code> ${TimeZone}${Enabled ? '' : ' (off)'}`,
  },
  { name: 'How', by: ({ Kind }) => Kind, cell: ({ Kind }) => Kind },
  { name: 'Next', by: ({ NextDue }) => NextDue ?? '', cell: ({ NextDue }) => html`<${Time} of=${NextDue} />` },
  { name: 'Last', by: ({ LastDue }) => LastDue ?? '', cell: (schedule) => html`<${Last} of=${schedule} />` },
  { name: 'Complete', number: true, cell: ({ Complete }) => Complete.length },
]

function menuWith(open) {
  return {
    label: ({ Id }) => `Actions on ${visibleText(Id)}`,
    items: (schedule) => [
      { text: schedule.Enabled ? 'Turn off…' : 'Turn on…', action: () => open(Switch, schedule) },
      { text: 'Remove…', danger: true, action: () => open(Remove, schedule) },
    ],
  }
}

function Last({ of: { LastDue, LastStatus, LastJobId } }) {
  if (LastDue === undefined) return 'none yet'
  return html`<${Time} of=${LastDue} /> <${Known} kind="job" of=${LastStatus} />${LastJobId && html` <a href=${linkTo(['jobs', LastJobId])}>Job</a>`}`
}

/** Changes the schedules of a bucket, and nothing else of its configuration. */
async function change(bucket, edit, signal) {
  const request = { bucket, query: { 'x-deal-config': '' }, signal }
  const configuration = await sendJson(session.value, request)
  const Schedules = edit(configuration.Schedules ?? [])
  await sendJson(session.value, { ...request, json: { ...configuration, Schedules } })
}

function Add({ of: { Bucket }, done, onClose }) {
  const action = async (values, signal) => {
    const text = (name) => values.get(name).trim() || undefined
    const bucket = text('bucket')
    const schedule = {
      Id: text('id'),
      Cron: text('cron'),
      TimeZone: text('zone'),
      Kind: text('kind'),
      KeepGenerations: text('keep') && Number(text('keep')),
      Filter: values.get('prefix') === '' ? undefined : { Prefix: values.get('prefix') },
    }
    await change(bucket, (all) => [...all, schedule], signal)
    done(`The schedule ${schedule.Id} was added.`)
    onClose()
  }
  const plain = { autocomplete: 'off', spellcheck: false, autocapitalize: 'off' }
  return html`<${Dialog} title="Add schedule" onClose=${onClose}>
    <${Form} action=${action} submit="Add" onCancel=${onClose}>
      <p>Each backup makes deals that the account of the server pays for, on the terms of the bucket, until the schedule is turned off or removed. The caps of the bucket and the server apply.</p>
      <${Field} label="Bucket" input=${{ name: 'bucket', defaultValue: Bucket, required: true, ...plain }} />
      <${Field} label="Id" hint="Up to 64 letters, digits and . _ -" input=${{ name: 'id', required: true, maxlength: 64, ...plain }} />
      <${Field} label="When" hint="Minute, hour, day of the month, month and day of the week: 30 3 * * SUN" input=${{ name: 'cron', required: true, ...plain }} />
      <${Field} label="Time zone" input=${{ name: 'zone', defaultValue: Intl.DateTimeFormat().resolvedOptions().timeZone, ...plain }} />
      <${Field} label="Prefix" hint="Only objects below it, each by a deal of its own. Without it, one deal for the whole bucket." input=${{ name: 'prefix', ...plain }} />
      <${Field} label="How" kind="select" input=${{ name: 'kind' }}>
        <option value="online">by deals of the gateway</option>
        <option value="offline">by tasks on the task platform</option>
      <//>
      <${Field} label="Backups to keep" hint="Deals of older ones are no longer renewed. Default: all." input=${{ name: 'keep', type: 'number', min: 1, max: 1000 }} />
      <${Check} label="I know that each backup costs money" input=${{ required: true }} />
    <//>
  <//>`
}

function Switch({ of: { Bucket, Id, Enabled }, done, onClose }) {
  const action = async (signal) => {
    await change(Bucket, (all) => all.map((one) => (one.Id === Id ? { ...one, Enabled: !Enabled } : one)), signal)
    done(`The schedule ${Id} is ${Enabled ? 'off' : 'on'}.`)
  }
  return html`<${Confirm} title=${Enabled ? 'Turn schedule off' : 'Turn schedule on'} submit=${Enabled ? 'Turn off' : 'Turn on'} action=${action} onClose=${onClose}>
    <p>${Enabled ? 'Backups that are due meanwhile are left out. Existing deals stay.' : 'From now on, each backup makes deals that cost money.'} <strong><${Name} text=${Id} /></strong> can be turned ${Enabled ? 'on' : 'off'} again.</p>
  <//>`
}

function Remove({ of: { Bucket, Id }, done, onClose }) {
  const action = async (signal) => {
    await change(Bucket, (all) => all.filter((one) => one.Id !== Id), signal)
    done(`The schedule ${Id} was removed.`)
  }
  return html`<${Confirm} title="Remove schedule" submit="Remove" action=${action} onClose=${onClose}>
    <p>The server makes no further backup by <strong><${Name} text=${Id} /></strong>. Deals that it has made stay. A schedule of the same name can be added again, and counts from then on.</p>
  <//>`
}
