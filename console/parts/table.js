import { visibleText } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { Menu } from './menu.js'
import { shown } from './name.js'

/** Rows that are there at once: more than a screen shows. The others follow when these are seen. */
const AT_ONCE = 40

/**
 * A table whose rows can be sorted by the columns that have `by`. In a narrow window each row is a card, and its first
 * column the heading of the card.
 * @param columns [{ name, cell(row), by?(row), number?, rest?, bare? }]: `by` is what is compared; a text in a cell may
 *   be of others; `number` is set to the right; `rest` takes the width that the others leave, on one line, for a `Middle`;
 *   `bare` needs no name on a card
 * @param key of a row; @param caption tells what the rows are
 * @param selection { keys: Set, change(keys), label(row) }, for a box before each row
 * @param menu { label(row), items(row) }, as for `Menu`, behind each row
 * @param empty a text, or an `Empty`
 */
export function Table({ caption, columns, rows, keyOf, selection, menu, empty = 'There is nothing here.' }) {
  const [order, setOrder] = useState({ column: undefined, down: false })
  const [seen, setSeen] = useState(rows.length <= AT_ONCE)
  useEffect(() => setSeen(true), [])
  if (rows.length === 0) return typeof empty === 'string' ? html`<p class="quiet">${empty}</p>` : empty
  const sorted = order.column === undefined ? rows : sortedBy(rows, columns[order.column].by, order.down)
  const all = rows.every((row) => selection?.keys.has(keyOf(row)))
  const row = (row) => html`<tr key=${keyOf(row)} role="row">
    ${selection && html`<td role="cell" class="box"><${Box} label=${`Select ${selection.label(row)}`} checked=${selection.keys.has(keyOf(row))} onChange=${() => selection.change(toggled(selection.keys, keyOf(row)))} /></td>`}
    ${columns.map((column, i) => html`<td role="cell" class=${classOf(column, i)} data-name=${column.bare ? undefined : visibleText(column.name)}>${shown(column.cell(row))}</td>`)}
    ${menu && html`<td role="cell" class="menu"><${Menu} label=${menu.label(row)} items=${() => menu.items(row)} /></td>`}
  </tr>`
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table role="table" class="cards">
      <caption class="unseen">${caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          ${selection && html`<th role="columnheader" scope="col" class="box"><${Box} label="Select all rows of this page" checked=${all} onChange=${() => selection.change(new Set(all ? [] : rows.map(keyOf)))} /></th>`}
          ${columns.map((column, i) => html`<${Heading} column=${column} order=${order.column === i ? order : undefined} onSort=${() => setOrder({ column: i, down: order.column === i && !order.down })} />`)}
          ${menu && html`<th role="columnheader" scope="col" class="menu"><span class="unseen">Actions</span></th>`}
        </tr>
      </thead>
      <tbody role="rowgroup">${(seen ? sorted : sorted.slice(0, AT_ONCE)).map(row)}</tbody>
    </table>
  </div>`
}

function classOf({ number, rest }, i) {
  return [i === 0 && 'first', number && 'number', rest && 'rest'].filter(Boolean).join(' ') || undefined
}

function Heading({ column: { name, by, number }, order, onSort }) {
  const sort = order && (order.down ? 'descending' : 'ascending')
  const kinds = [number && 'number', by && 'sorts'].filter(Boolean).join(' ') || undefined
  return html`<th role="columnheader" scope="col" class=${kinds} aria-sort=${sort}>
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
