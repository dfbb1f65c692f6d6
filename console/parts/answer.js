import { html } from '../lib/html.js'
import { Copied } from './copy.js'
import { Name } from './name.js'
import { Facts, Table } from './table.js'

/** Identifiers by content, and hashes: nobody reads them to the end. */
const IDENTIFIER = /^(?:[0-9a-f-]{36})?(?:baf[a-z0-9]{50,}|baga[a-z0-9]{50,}|Qm[A-Za-z0-9]{44}|0x[0-9a-f]{40,64})$/

/** Members that are shown beside the others, as controls of the page. */
const PAGING = ['IsTruncated', 'NextContinuationToken']

/**
 * A JSON document of any call: an object as facts, a list of objects as a table with a column for each of their members.
 * @param title names the tables for screen readers, and has to be unique on a screen
 */
export function Answer({ value, title = 'Answer' }) {
  if (Array.isArray(value)) return html`<${List} title=${title} items=${value} />`
  if (value === null || typeof value !== 'object') return html`<${Name} text=${value} />`
  const members = Object.entries(value).filter(([name]) => !PAGING.includes(name))
  const lists = members.filter(([, member]) => isTable(member))
  const facts = members
    .filter(([, member]) => !isTable(member))
    .map(([name, member]) => [name, html`<${Value} title=${`${title}: ${name}`} value=${member} />`])
  return html`${facts.length > 0 && html`<${Facts} facts=${facts} />`}
    ${lists.map(([name, items]) => html`<h3><${Name} text=${name} /></h3><${List} title=${`${title}: ${name}`} items=${items} />`)}`
}

function isTable(value) {
  return Array.isArray(value) && value.some((item) => item !== null && typeof item === 'object')
}

function List({ title, items }) {
  if (items.length === 0) return html`<p class="quiet">There is nothing here.</p>`
  const rows = items.map((item, at) => ({
    at,
    item: item !== null && typeof item === 'object' ? item : { Value: item },
  }))
  const names = [...new Set(rows.flatMap(({ item }) => Object.keys(item)))]
  const columns = names.map((name) => ({
    name,
    by: isSortable(rows, name) ? ({ item }) => item[name] ?? '' : undefined,
    cell: ({ at, item }) => html`<${Value} title=${`${title}, row ${at + 1}: ${name}`} value=${item[name]} />`,
  }))
  return html`<${Table} caption=${title} rows=${rows} keyOf=${({ at }) => at} columns=${columns} />`
}

function isSortable(rows, name) {
  const types = new Set(rows.flatMap(({ item }) => (item[name] === undefined ? [] : [typeof item[name]])))
  return types.size === 1 && (types.has('string') || types.has('number'))
}

function Value({ title, value }) {
  if (value === undefined || value === null) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) {
    if (value.length === 0) return 'none'
    if (!isTable(value)) return value.map((item, i) => html`${i > 0 && ', '}<${Name} text=${item} />`)
    return html`<details><summary>${value.length} entries</summary><${List} title=${title} items=${value} /></details>`
  }
  if (typeof value === 'object') {
    return html`<details><summary>${Object.keys(value).length} members</summary><${Answer} title=${title} value=${value} /></details>`
  }
  if (IDENTIFIER.test(value)) return html`<${Copied} text=${value} what="the identifier" />`
  return html`<${Name} text=${value} />`
}
