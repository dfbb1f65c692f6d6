import { sendJson } from '../lib/api.js'
import { formatBytes, formatCount, formatSpan, formatTime } from '../lib/format.js'
import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { fullAt } from '../lib/trend.js'
import { Known } from '../parts/known.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Page } from '../parts/page.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'
import { Time } from '../parts/time.js'
import { Charts } from './overview-charts.js'

const DAY_MS = 86_400_000
/** What ends within this time is told, days. */
const SOON = 30

/** What GetHealth calls them. */
const CHECKS = { gateway: 'Gateway', state: 'Records', data: 'Data folder' }

/** What a key pair with fewer rights, or a server without the plugin, refuses: its part is left out. */
const LEFT_OUT = new Set(['AccessDenied', 'NotImplemented', 'NoSuchKey', 'MethodNotAllowed'])

/** What there is, what happens and what needs attention. */
export function Overview({ query }) {
  const client = session.value
  const read = (path, query) => useLoaded((signal) => sendJson(client, { path, query, signal }), [client])
  const before = new Date(Date.now() + SOON * DAY_MS).toISOString()
  const parts = {
    health: read('/-/health'),
    upkeep: read('/-/upkeep/v1'),
    storage: read('/-/gateway/v1/storage-info'),
    day: read('/-/activity/v1'),
    month: read('/-/activity/v1', { period: 'month' }),
    spending: read('/-/deal/v1/spending'),
    failed: read('/-/jobs/v1', { status: 'Failed', 'max-items': 100 }),
    unknown: read('/-/jobs/v1', { status: 'Unknown', 'max-items': 100 }),
    deals: read('/-/deal/v1/deals', { 'max-items': 1000 }),
    ending: read('/-/deal/v1/deals', { 'max-items': 1000, 'ends-before': before }),
    tasks: read('/-/task/v1/my-tasks', { 'max-items': 100, status: 'ProgressWithFailure' }),
  }
  const reload = () => {
    for (const part of Object.values(parts)) part.reload()
  }
  const { health, upkeep, storage, day, month, failed, unknown, deals, ending, tasks } = parts
  const all = [health, storage, day, failed, deals]
  const hidden = all.filter(({ error }) => LEFT_OUT.has(error?.code))
  return html`<${Page} title="Overview" actions=${html`<button type="button" onClick=${reload}>Refresh</button>`}>
    <h2>What failed</h2>
    <${Failures} lists=${[
      {
        of: failed,
        count: ({ Jobs }) => Jobs.length,
        word: 'job',
        state: 'Failed',
        href: linkTo(['jobs'], { status: 'Failed' }),
      },
      {
        of: unknown,
        count: ({ Jobs }) => Jobs.length,
        word: 'job',
        state: 'Unknown',
        href: linkTo(['jobs'], { status: 'Unknown' }),
      },
      {
        of: deals,
        count: ({ Deals }) => Deals.filter(({ Status }) => /error|fail|slashed|reject/i.test(Status ?? '')).length,
        word: 'deal',
        state: 'Failed',
        href: linkTo(['deals']),
      },
      {
        of: tasks,
        count: ({ Tasks }) => Tasks.length,
        word: 'task',
        state: 'ProgressWithFailure',
        href: linkTo(['tasks'], { status: 'ProgressWithFailure' }),
      },
    ]} />
    <h2>Server</h2>
    <${Loaded} of=${health} show=${(value) => html`<${Server} health=${value} upkeep=${upkeep} storage=${storage.value} month=${month.value} />`} />
    <${Charts} day=${day} month=${month} spending=${parts.spending} shown=${query.get('period') === 'month' ? 'month' : 'day'} leftOut=${LEFT_OUT} />
    <${Part} title=${`Deals that end within ${SOON} days`} of=${ending} show=${Ending} />
    <${Part} title="Deals by state" of=${deals} show=${DealStates} />
    ${hidden.length > 0 && html`<p class="quiet">This key pair may not see everything that the overview has: ask for one of the server's own account with all rights.</p>`}
  <//>`
}

/** A part with its heading; nothing where it is left out. */
function Part({ title, of, show }) {
  if (of.value === undefined && LEFT_OUT.has(of.error?.code)) return null
  return html`<section><h2>${title}</h2><${Loaded} of=${of} show=${show} /></section>`
}

function Failures({ lists }) {
  if (lists.some(({ of }) => of.loading && of.value === undefined))
    return html`<p class="quiet" role="status">Loading…</p>`
  const known = lists.filter(({ of }) => of.value !== undefined)
  const found = known.filter(({ of, count }) => count(of.value) > 0)
  if (known.length === 0) return html`<p class="quiet">This key pair may not see what has failed.</p>`
  if (found.length === 0) return html`<p class="quiet">No job, deal or task has failed.</p>`
  return html`<ul class="plain">
    ${found.map(({ of, count, word, state, href }) => html`<li><${State} of=${state} />: <a href=${href}>${formatCount(count(of.value), word)}${of.value.IsTruncated ? ' or more' : ''}</a></li>`)}
  </ul>`
}

function Server({ health: { Status, Problem, Checks = [], FreeBytes, UptimeSeconds }, upkeep, storage, month }) {
  const { LastBackup, Certificates = [] } = upkeep.value ?? {}
  return html`<${Facts}
    facts=${[
      ['State', html`<${State} of=${Status} />`],
      ['Problem', Problem],
      ...Checks.map(({ Name, Works, Milliseconds }) => [
        CHECKS[Name] ?? Name,
        html`<${State} of=${Works ? 'works' : 'failed'} /> in ${Milliseconds} ms`,
      ]),
      ['Running for', UptimeSeconds && formatSpan(UptimeSeconds)],
      ['Stored', storage && formatBytes(storage.Used)],
      ['Free on disk', FreeBytes && formatBytes(FreeBytes)],
      ['Disk is full', FreeBytes && month && html`<${Full} hours=${month.Intervals} />`],
      ['Last backup', upkeep.value && (LastBackup ? html`<${Time} of=${LastBackup} exact />` : 'None is known')],
      ...Certificates.map(({ Option, Number: number, ValidUntil }) => [
        `Certificate ${number} of --${Option}`,
        html`valid until <${Time} of=${ValidUntil} exact />`,
      ]),
    ]}
  />`
}

/** When the disk will be full, and by what that was computed. */
function Full({ hours }) {
  const points = hours.flatMap(({ Start, FreeBytes }) =>
    FreeBytes === undefined ? [] : [{ at: Date.parse(Start), value: FreeBytes }],
  )
  const full = fullAt(points)
  if (full === undefined)
    return html`<span class="quiet">Not known yet: a trend needs the hours of a day, and there ${points.length === 1 ? 'is' : 'are'} ${points.length}.</span>`
  const basis = `by a straight line through the free space of ${formatCount(points.length, 'hour')} since ${formatTime(points[0].at)}, ${formatBytes(Math.abs(full.perDay))} ${full.perDay < 0 ? 'less' : 'more'} each day`
  return html`<span>${full.at === undefined ? 'Not within a year' : html`<${Time} of=${full.at} />`}, <span class="quiet">${basis}</span></span>`
}

function Ending({ Deals, IsTruncated }) {
  const now = new Date().toISOString()
  const rows = Deals.filter(({ EstimatedExpiry }) => EstimatedExpiry > now)
  return html`${IsTruncated && html`<p class="quiet">Of the newest 1,000 deals that end until then.</p>`}
    <${Table} caption=${`Deals that end within ${SOON} days`} rows=${rows} keyOf=${({ DealCid }) => DealCid} columns=${endingColumns} empty="No deal ends within this time." />`
}

const endingColumns = [
  {
    name: 'For',
    by: ({ Bucket, Key = '' }) => `${Bucket}/${Key}`,
    cell: ({ DealCid, Bucket, Key = '' }) =>
      html`<a href=${linkTo(['deals', DealCid])}><${Name} text=${`${Bucket}/${Key}`} /></a>`,
  },
  { name: 'Provider', by: ({ MinerId }) => MinerId, cell: ({ MinerId }) => html`<${Name} text=${MinerId} />` },
  { name: 'State', by: ({ Status = '' }) => Status, cell: ({ Status }) => html`<${Known} kind="deal" of=${Status} />` },
  {
    name: 'Ends',
    by: ({ EstimatedExpiry }) => EstimatedExpiry,
    cell: ({ EstimatedExpiry }) => html`<${Time} of=${EstimatedExpiry} />`,
  },
]

function DealStates({ Deals, IsTruncated }) {
  const counts = new Map()
  for (const { Status = 'not known' } of Deals) counts.set(Status, (counts.get(Status) ?? 0) + 1)
  const rows = [...counts].map(([state, count]) => ({ state, count }))
  return html`${IsTruncated && html`<p class="quiet">Of the newest 1,000 deals.</p>`}
    <${Table} caption="Deals by state" rows=${rows} keyOf=${({ state }) => state} columns=${dealColumns} empty="There is no deal." />`
}

const dealColumns = [
  { name: 'State', by: ({ state }) => state, cell: ({ state }) => html`<${Known} kind="deal" of=${state} />` },
  { name: 'Deals', number: true, by: ({ count }) => count, cell: ({ count }) => count },
]
