import { html, useEffect, useState } from '../lib/html.js'
import { shown } from './name.js'

/** Rows that are there at once: more than a screen shows. The others follow when these are seen. */
const AT_ONCE = 40

/**
 * A table whose rows can be sorted by the columns that have `by`.
 * @param columns [{ name, cell(row), by?(row), number? }]: `by` is what is compared; a text in a cell may be of others
 * @param key of a row; @param caption tells what the rows are
 * @param selection { keys: Set, change(keys), label(row) }, for a box before each row
 */
export function Table({ caption, columns, rows, keyOf, selection, empty = 'There is nothing here.' }) {
  const [order, setOrder] = useState({ column: undefined, down: false })
  const [seen, setSeen] = useState(rows.length <= AT_ONCE)
  useEffect(() => setSeen(true), [])
  const sorted = order.column === undefined ? rows : sortedBy(rows, columns[order.column].by, order.down)
  const all = rows.length > 0 && rows.every((row) => selection?.keys.has(keyOf(row)))
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption class="unseen">${caption}</caption>
      <thead>
        <tr>
          ${selection && html`<th scope="col" class="box"><${Box} label="Select all rows of this page" checked=${all} onChange=${() => selection.change(new Set(all ? [] : rows.map(keyOf)))} /></th>`}
          ${columns.map((column, i) => html`<${Heading} column=${column} order=${order.column === i ? order : undefined} onSort=${() => setOrder({ column: i, down: order.column === i && !order.down })} />`)}
        </tr>
      </thead>
      <tbody>
        ${(seen ? sorted : sorted.slice(0, AT_ONCE)).map(
          (row) => html`<tr key=${keyOf(row)}>
            ${selection && html`<td class="box"><${Box} label=${`Select ${selection.label(row)}`} checked=${selection.keys.has(keyOf(row))} onChange=${() => selection.change(toggled(selection.keys, keyOf(row)))} /></td>`}
            ${columns.map(({ cell, number }) => html`<td class=${number ? 'number' : undefined}>${shown(cell(row))}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
    ${rows.length === 0 && html`<p class="quiet">${empty}</p>`}
  </div>`
}

function Heading({ column: { name, by, number }, order, onSort }) {
  const sort = order && (order.down ? 'descending' : 'ascending')
  return html`<th scope="col" class=${number ? 'number' : undefined} aria-sort=${sort}>
    ${by ? html`<button type="button" class="plain" onClick=${onSort}>${name}${order ? (order.down ? ' ↓' : ' ↑') : ''}</button>` : name}
  </th>`
}

function Box({ label, checked, onChange }) {
  return html`<label class="target"><input type="checkbox" aria-label=${label} checked=${checked} onChange=${onChange} /></label>`
}

function sortedBy(rows, by, down) {
  const sign = down ? -1 : 1
  return [...rows].sort((one, other) => {
    const [a, b] = [by(one), by(other)]
    return a < b ? -sign : a > b ? sign : 0
  })
}

function toggled(keys, key) {
  const next = new Set(keys)
  if (!next.delete(key)) next.add(key)
  return next
}

/** Facts about one thing. @param facts [[name, value]]: both may be texts of others; undefined values are left out */
export function Facts({ facts }) {
  return html`<dl class="facts">
    ${facts
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) => html`<div><dt>${shown(name)}</dt><dd>${shown(value)}</dd></div>`)}
  </dl>`
}
