import { sendJson } from '../lib/api.js'
import { formatBytes, formatCount, formatTime } from '../lib/format.js'
import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Page } from '../parts/page.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'

/** What there is, what happens and what needs attention. */
export function Overview() {
  const client = session.value
  const read = (path, query) => useLoaded((signal) => sendJson(client, { path, query, signal }), [client])
  const parts = {
    health: read('/-/health'),
    storage: read('/-/gateway/v1/storage-info'),
    activity: read('/-/activity/v1'),
    failed: read('/-/jobs/v1', { status: 'Failed', 'max-items': 100 }),
    unknown: read('/-/jobs/v1', { status: 'Unknown', 'max-items': 100 }),
    deals: read('/-/deal/v1/deals', { 'max-items': 1000 }),
  }
  const reload = () => {
    for (const part of Object.values(parts)) part.reload()
  }
  return html`<${Page} title="Overview">
    <div class="buttons"><button type="button" onClick=${reload}>Refresh</button></div>
    <h2>Health</h2>
    <${Loaded} of=${parts.health} show=${Health} />
    <h2>Storage</h2>
    <${Loaded} of=${parts.storage} show=${Storage} />
    <h2>Last 24 hours</h2>
    <${Loaded} of=${parts.activity} show=${Activity} />
    <h2>Jobs that need attention</h2>
    <${Loaded} of=${parts.failed} show=${(answer) => html`<${Counted} answer=${answer} state="Failed" />`} />
    <${Loaded} of=${parts.unknown} show=${(answer) => html`<${Counted} answer=${answer} state="Unknown" />`} />
    <h2>Deals by state</h2>
    <${Loaded} of=${parts.deals} show=${DealStates} />
  <//>`
}

function Health({ Status, Checks = [], FreeBytes, UptimeSeconds }) {
  return html`<${Facts}
    facts=${[
      ['Server', html`<${State} of=${Status} />`],
      ...Checks.map(({ Name, Works, Milliseconds }) => [
        Name,
        html`<${State} of=${Works ? 'works' : 'failed'} /> in ${Milliseconds} ms`,
      ]),
      ['Free on disk', FreeBytes && formatBytes(FreeBytes)],
      ['Running for', UptimeSeconds && formatDuration(UptimeSeconds)],
    ]}
  />`
}

function formatDuration(seconds) {
  if (seconds < 7200) return formatCount(Math.round(seconds / 60), 'minute')
  return seconds < 172_800
    ? formatCount(Math.round(seconds / 3600), 'hour')
    : formatCount(Math.round(seconds / 86_400), 'day')
}

function Storage({ Used, Available, Total }) {
  return html`<${Facts} facts=${[['Used', formatBytes(Used)], ['Available', formatBytes(Available)], ['In all', formatBytes(Total)]]} />`
}

function Activity({ Intervals, IntervalSeconds }) {
  const sum = (name) => Intervals.reduce((total, interval) => total + interval[name], 0)
  const perInterval = slots(Intervals, IntervalSeconds)
  const most = Math.max(0, ...perInterval)
  return html`<${Facts}
      facts=${[
        ['Requests', sum('Requests').toLocaleString()],
        ['Refused', sum('ClientErrors').toLocaleString()],
        ['Failed', sum('ServerErrors').toLocaleString()],
        ['Received', formatBytes(sum('BytesIn'))],
        ['Sent', formatBytes(sum('BytesOut'))],
      ]}
    />
    <${Bars} values=${perInterval} label=${`Requests of the last 24 hours, at most ${most} in ${IntervalSeconds / 60} minutes`} />
    <details>
      <summary>The numbers</summary>
      <${Table} caption="Requests by time" rows=${Intervals} keyOf=${({ Start }) => Start} columns=${numbers} empty="There was no request." />
    </details>`
}

/** Requests of each interval of the last day, oldest first; those without any request are not in the answer. */
function slots(intervals, seconds) {
  const count = 86_400 / seconds
  const last = Math.floor(Date.now() / 1000 / seconds)
  const values = new Array(count).fill(0)
  for (const { Start, Requests } of intervals) {
    const at = count - 1 - (last - Math.floor(Date.parse(Start) / 1000 / seconds))
    if (at >= 0 && at < count) values[at] = Requests
  }
  return values
}

const number = (name, member, show = (value) => value.toLocaleString()) => ({
  name,
  number: true,
  by: (row) => row[member],
  cell: (row) => show(row[member]),
})

const numbers = [
  { name: 'From', by: ({ Start }) => Start, cell: ({ Start }) => formatTime(Start) },
  number('Requests', 'Requests'),
  number('Refused', 'ClientErrors'),
  number('Failed', 'ServerErrors'),
  number('Received', 'BytesIn', formatBytes),
  number('Sent', 'BytesOut', formatBytes),
]

function Counted({ answer: { Jobs, IsTruncated }, state }) {
  const count = `${formatCount(Jobs.length, 'job')}${IsTruncated ? ' or more' : ''}`
  return html`<p><${State} of=${state} />: ${Jobs.length === 0 ? 'none' : html`<a href=${linkTo(['jobs'], { status: state })}>${count}</a>`}</p>`
}

function DealStates({ Deals, IsTruncated }) {
  const counts = new Map()
  for (const { Status = 'not known' } of Deals) counts.set(Status, (counts.get(Status) ?? 0) + 1)
  const rows = [...counts].map(([state, count]) => ({ state, count }))
  return html`${IsTruncated && html`<p class="quiet">Of the newest 1,000 deals.</p>`}
    <${Table} caption="Deals by state" rows=${rows} keyOf=${({ state }) => state} columns=${dealColumns} empty="There is no deal." />`
}

const dealColumns = [
  { name: 'State', by: ({ state }) => state, cell: ({ state }) => html`<${State} of=${state} />` },
  { name: 'Deals', number: true, by: ({ count }) => count, cell: ({ count }) => count },
]

const WIDTH = 720
const HEIGHT = 80

/**
 * A row of bars over time; its numbers stand in a table elsewhere on the screen.
 * @param values numbers, oldest first; @param label says what they are, with their largest
 */
function Bars({ values, label }) {
  const most = Math.max(1, ...values)
  const step = WIDTH / Math.max(1, values.length)
  return html`<svg class="bars" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${label}>
    ${values.map((value, i) => {
      const height = value === 0 ? 0 : Math.max(1, (HEIGHT * value) / most)
      return html`<rect x=${i * step} y=${HEIGHT - height} width=${Math.max(0.5, step - 0.5)} height=${height} />`
    })}
  </svg>`
}
