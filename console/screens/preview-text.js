import { tableOf } from '../lib/csv.js'
import { formatBytes, formatCount, visibleText } from '../lib/format.js'
import { html, useMemo, useState } from '../lib/html.js'
import { Name } from '../parts/name.js'
import { Table } from '../parts/table.js'

/** Most rows and columns of a table that are shown. */
const MOST_ROWS = 200
const MOST_COLUMNS = 50

/** A text as it is, JSON with its structure, or separated values as a table. @param cut bytes after which it was cut */
export function TextPreview({ name, text, cut }) {
  const [plain, setPlain] = useState(false)
  const rows = useMemo(() => (/\.(csv|tsv|tab)$/i.test(name) ? tableOf(text, Boolean(cut)) : undefined), [name, text])
  const json = useMemo(() => (cut || rows ? undefined : prettyJson(text)), [text])
  const isBetter = rows !== undefined || (json !== undefined && json !== text)
  return html`${cut ? html`<p class="quiet">The first ${formatBytes(cut)}:</p>` : ''}
    ${isBetter && html`<label class="inline"><input type="checkbox" checked=${plain} onChange=${() => setPlain(!plain)} /> Show the text itself</label>`}
    ${rows && !plain ? html`<${Rows} rows=${rows} />` : html`<pre class="text" tabindex="0" role="region" aria-label="Content">${plain ? text : (json ?? text)}</pre>`}`
}

function prettyJson(text) {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' ? JSON.stringify(value, null, 2) : undefined
  } catch {
    return undefined
  }
}

function Rows({ rows: [head, ...all] }) {
  const rows = all.slice(0, MOST_ROWS).map((cells, number) => ({ number, cells }))
  const columns = head.slice(0, MOST_COLUMNS).map((title, at) => {
    const number = rows.every(({ cells }) => /^[-+]?[\d.,\s]*$/.test(cells[at] ?? ''))
    const value = ({ cells }) => cells[at] ?? ''
    return {
      name: visibleText(title).trim() || `Column ${at + 1}`,
      number,
      by: number ? (row) => Number(value(row).replaceAll(',', '')) || 0 : value,
      cell: (row) => html`<${Name} text=${value(row)} />`,
    }
  })
  const left = [
    all.length > rows.length && formatCount(all.length - rows.length, 'more row'),
    head.length > columns.length && formatCount(head.length - columns.length, 'more column'),
  ].filter(Boolean)
  return html`<div class="bounded"><${Table} caption="Content" columns=${columns} rows=${rows} keyOf=${({ number }) => number} /></div>
    ${left.length > 0 && html`<p class="quiet">${left.join(' and ')}: download it.</p>`}`
}
