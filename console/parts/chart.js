import { formatBytes } from '../lib/format.js'
import { html } from '../lib/html.js'
import { Folded } from './page.js'
import { Table } from './table.js'

const [WIDTH, HEIGHT] = [480, 150]
/** Room for the words of the axes. */
const [LEFT, BOTTOM, TOP, RIGHT] = [66, 22, 8, 8]
const HOUR = 3_600_000
const DAY = 24 * HOUR

/**
 * Numbers over time, as lines and as a table behind them. A gap in the points is a gap in the line.
 * @param title heading of the chart; @param summary a sentence, for those who do not see the lines
 * @param series [{ name, points: [{ at, value }] }], at most three, oldest first; `at` is ms since 1970
 * @param from, until the span of the axis, ms since 1970; @param step ms between two points
 * @param powers the axis has powers of ten, for values that differ by orders
 * @param format of a value, short, since it stands at the axis, too: `formatBytes` for bytes
 */
export function Chart({ title, summary, series: given, from, until, step, format, powers }) {
  // A server of another kind may send times that are none.
  const isNumber = ({ at, value }) => Number.isFinite(at) && Number.isFinite(value)
  const series = given.map(({ name, points }) => ({ name, points: points.filter(isNumber) }))
  const values = series.flatMap(({ points }) => points.map(({ value }) => value))
  if (values.length === 0)
    return html`<section class="chart"><h3>${title}</h3><p class="quiet">Nothing was recorded in this time.</p></section>`
  const axis = powers ? powersOf(values) : evenly(Math.max(...values), format)
  const x = (at) => LEFT + ((at - from) / (until - from)) * (WIDTH - LEFT - RIGHT)
  const y = (value) => HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)
  return html`<section class="chart">
    <h3>${title}</h3>
    ${series.length > 1 && html`<ul class="legend">${series.map(({ name }, i) => html`<li class=${`series-${i + 1}`}><${Sample} dashed=${i % 2 === 1} /><span class="quiet">${name}</span></li>`)}</ul>`}
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${title}: ${summary}`}>
      ${axis.ticks.map(
        (value) => html`<g>
        <line class="grid" x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y(value)} y2=${y(value)} />
        <text x=${LEFT - 6} y=${y(value) + 4} text-anchor="end">${format(value)}</text>
      </g>`,
      )}
      ${ticks(from, until).map(({ at, text }) => html`<text x=${x(at)} y=${HEIGHT - 5} text-anchor="middle">${text}</text>`)}
      ${series.map(({ points }, i) => html`<g class=${`series-${i + 1}`}>${runs(points, step).map((run) => html`<${Run} run=${run.map(({ at, value }) => [x(at), y(value)])} floor=${i === 0 && !powers ? y(0) : undefined} dashed=${i % 2 === 1} />`)}</g>`)}
    </svg>
    <${Folded} title=${`${title} in numbers`}>
      <${Table} caption=${title} rows=${rowsOf(series)} keyOf=${({ at }) => at} columns=${columnsOf(series, until - from > 2 * DAY && step >= DAY, format)} />
    <//>
  </section>`
}

function Sample({ dashed }) {
  return html`<svg viewBox="0 0 24 8" aria-hidden="true"><path class=${dashed ? 'line dashed' : 'line'} d="M0 4H24" /></svg>`
}

/** A line through points that follow one another, with the area down to `floor`; one point alone is a dot. */
function Run({ run, floor, dashed }) {
  const [[firstX, firstY]] = run
  const lastX = run.at(-1)[0]
  if (run.length === 1) return html`<circle class="dot" cx=${firstX} cy=${firstY} r="2" />`
  const path = run.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('')
  return html`${floor !== undefined && html`<path class="area" d=${`${path}L${lastX.toFixed(1)} ${floor}L${firstX.toFixed(1)} ${floor}Z`} />`}
    <path class=${dashed ? 'line dashed' : 'line'} d=${path} />`
}

function runs(points, step) {
  const found = []
  for (const point of points) {
    const run = found.at(-1)
    if (run && point.at - run.at(-1).at <= 1.5 * step) run.push(point)
    else found.push([point])
  }
  return found
}

/** Times along the axis: hours of one day, or days. */
function ticks(from, until) {
  const isDay = until - from <= 2 * DAY
  const every = isDay ? 6 * HOUR : 7 * DAY
  const words = new Intl.DateTimeFormat(
    undefined,
    isDay ? { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } : { day: 'numeric', month: 'short' },
  )
  const midnight = new Date(until)
  midnight.setHours(0, 0, 0, 0)
  const found = []
  for (let at = midnight.getTime() + (isDay ? DAY : 0); at > from; at -= every)
    if (at < until - every / 8 && at > from + every / 8)
      found.unshift({ at, text: words.format(at).replace(/\p{Cf}/gu, '') })
  return found
}

function evenly(most, format) {
  const top = roundedUp(most, format)
  return { share: (value) => value / top, ticks: [0, top / 2, top] }
}

/** From the power of ten below all values to the one above them. */
function powersOf(values) {
  const above = values.filter((value) => value > 0).map(Math.log10)
  const first = Math.floor(Math.min(...above, 0))
  const last = Math.max(Math.ceil(Math.max(...above, 0)), first + 1)
  const share = (value) => (value > 0 ? (Math.log10(value) - first) / (last - first) : 0)
  return { share, ticks: Array.from({ length: last - first + 1 }, (_, n) => 10 ** (first + n)) }
}

/** The next number above that is short, of bytes in their unit. */
function roundedUp(value, format) {
  if (!(value > 0)) return 1
  const unit = format === formatBytes ? 1024 ** Math.floor(Math.log2(value) / 10) : 1
  const base = unit * 10 ** Math.floor(Math.log10(value / unit))
  return [1, 2, 4, 6, 8, 10].map((factor) => factor * base).find((one) => one >= value)
}

function rowsOf(series) {
  const rows = new Map()
  for (const [i, { points }] of series.entries())
    for (const { at, value } of points) rows.set(at, { ...rows.get(at), at, [i]: value })
  return [...rows.values()].sort((one, other) => other.at - one.at)
}

function columnsOf(series, ofDays, format) {
  const words = new Intl.DateTimeFormat(
    undefined,
    ofDays ? { dateStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' },
  )
  const time = {
    name: ofDays ? 'Day' : 'From',
    by: ({ at }) => at,
    cell: ({ at }) => words.format(at).replace(/\p{Cf}/gu, ''),
  }
  const numbers = series.map(({ name }, i) => ({
    name,
    number: true,
    by: (row) => row[i] ?? -1,
    cell: (row) => (row[i] === undefined ? undefined : format(row[i])),
  }))
  return [time, ...numbers]
}
