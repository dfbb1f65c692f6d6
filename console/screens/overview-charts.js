import { formatBytes, formatCount } from '../lib/format.js'
import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { Chart } from '../parts/chart.js'
import { Loaded } from '../parts/load.js'
import { Facts } from '../parts/table.js'

const DAY_MS = 86_400_000
const PERIODS = { day: { title: 'Last 24 hours', ms: DAY_MS }, month: { title: 'Last 31 days', ms: 31 * DAY_MS } }

/**
 * What was requested, stored and spent in the last day or month.
 * @param shown `day` or `month`; @param leftOut codes of errors of what is not shown
 */
export function Charts({ day, month, spending, shown, leftOut }) {
  const of = shown === 'day' ? day : month
  if (of.value === undefined && leftOut.has(of.error?.code)) return null
  return html`<section>
    <h2>Traffic</h2>
    <nav class="tabs" aria-label="Period">
      <ul>
        ${Object.entries(PERIODS).map(([name, { title }]) => html`<li><a href=${linkTo(['overview'], { period: name })} aria-current=${name === shown ? 'page' : undefined}>${title}</a></li>`)}
      </ul>
    </nav>
    <${Loaded} of=${of} show=${(activity) => html`<${Period} activity=${activity} hours=${month.value?.Intervals ?? []} spending=${spending.value} shown=${shown} />`} />
  </section>`
}

const number = (value) => (Number.isInteger(value) ? value : Number(value.toPrecision(3))).toLocaleString()
const milliseconds = (value) => (value >= 1000 ? `${number(value / 1000)} s` : `${number(value)} ms`)
const fil = (value) => `${number(value)} FIL`

function Period({ activity, hours, spending, shown }) {
  const { IntervalSeconds } = activity
  // What states no time has no place.
  const Intervals = activity.Intervals.filter(({ Start }) => !Number.isNaN(Date.parse(Start)))
  const step = IntervalSeconds * 1000
  const until = Date.now()
  const from = until - PERIODS[shown].ms
  const sum = (member) => Intervals.reduce((total, one) => total + one[member], 0)
  const common = { from, until, step }
  const counts = (member) => ({ ...filled(Intervals, member, common) })
  const points = (intervals, member) =>
    intervals.flatMap(({ Start, [member]: value }) =>
      value === undefined || !(Date.parse(Start) >= from) ? [] : [{ at: Date.parse(Start), value }],
    )
  const errors = sum('ClientErrors') + sum('ServerErrors')
  const times = points(Intervals, 'P99Milliseconds')
  const slowest = Math.max(0, ...times.map(({ value }) => value))
  const stored = points(hours, 'StoredBytes')
  const days = (spending?.Days ?? [])
    .map(({ Day, Fil }) => ({ at: Date.parse(Day), value: Number(Fil) }))
    .filter(({ at }) => at >= from)
  const spent = days.reduce((total, { value }) => total + value, 0)
  return html`<${Facts} facts=${[
    ['Requests', sum('Requests').toLocaleString()],
    ['Refused', sum('ClientErrors').toLocaleString()],
    ['Failed', sum('ServerErrors').toLocaleString()],
    ['Received', formatBytes(sum('BytesIn'))],
    ['Sent', formatBytes(sum('BytesOut'))],
    ['Spent', spending && shown === 'month' ? fil(spent) : undefined],
  ]} />
  <div class="charts">
    <${Chart} title="Requests and errors" summary=${`${formatCount(sum('Requests'), 'request')}, ${formatCount(errors, 'error')}`} series=${[
      { name: 'Requests', points: counts('Requests').points },
      { name: 'Errors', points: counts('Errors').points },
    ]} format=${number} ...${common} />
    <${Chart} title="Bytes" summary=${`${formatBytes(sum('BytesIn'))} received, ${formatBytes(sum('BytesOut'))} sent`} series=${[
      { name: 'Sent', points: counts('BytesOut').points },
      { name: 'Received', points: counts('BytesIn').points },
    ]} format=${formatBytes} ...${common} />
    <${Chart} title="Time of requests" summary=${`99 % of the requests of an interval took ${milliseconds(slowest)} at most`} series=${[
      { name: 'Half of them (p50)', points: points(Intervals, 'P50Milliseconds') },
      { name: '99 % of them (p99)', points: times },
    ]} format=${milliseconds} powers ...${common} />
    <${Chart} title="Stored bytes" summary=${stored.length > 0 ? `${formatBytes(stored.at(-1).value)} now, ${formatBytes(stored[0].value)} at first` : ''} series=${[{ name: 'Stored', points: stored }]} format=${formatBytes} from=${from} until=${until} step=${3_600_000} />
    ${shown === 'month' && spending && html`<${Chart} title="Spending" summary=${`${fil(spent)} on ${formatCount(days.length, 'day')}`} series=${[{ name: 'Spent', points: everyDay(days, from, until) }]} format=${fil} from=${from} until=${until} step=${DAY_MS} />`}
  </div>`
}

/** Points for all intervals: those without any request are not in the answer, and have none. */
function filled(intervals, member, { from, until, step }) {
  const known = new Map(intervals.map((one) => [Date.parse(one.Start), one]))
  const first = intervals.length === 0 ? until : Math.max(from, Date.parse(intervals[0].Start))
  const points = []
  for (let at = Math.ceil(first / step) * step; at <= until; at += step) {
    const one = known.get(at)
    const value = one === undefined ? 0 : member === 'Errors' ? one.ClientErrors + one.ServerErrors : one[member]
    points.push({ at, value })
  }
  return { points }
}

/** Days without an expense are not in the answer. */
function everyDay(days, from, until) {
  const known = new Map(days.map(({ at, value }) => [at, value]))
  const points = []
  for (let at = Math.ceil(from / DAY_MS) * DAY_MS; at <= until; at += DAY_MS)
    points.push({ at, value: known.get(at) ?? 0 })
  return days.length === 0 ? [] : points
}
