import { stringify } from 'csv-stringify/sync'
import type { Document } from '../declare/call.js'
import type { Shape } from './shape.js'

/**
 * Serializes the items of a list as CSV (https://www.rfc-editor.org/rfc/rfc4180): a row of names, and a row for each
 * item. Members that are lists or objects are left out; one that is absent or null is an empty cell.
 * A text that spreadsheets would take for a formula begins with `'`.
 * @param shape of the document that holds the list
 */
export function csvDocument(shape: Shape, list: string, document: Document): string {
  const columns = columnsOf(shape, list)
  const rows = (document[list] as readonly Document[]).map((item) => columns.map((name) => cell(item[name])))
  // A lone carriage return or line feed ends a row, too, for many readers.
  const breaks = { record_delimiter: 'windows', quoted_match: /[\r\n]/ } as const
  return stringify([columns, ...rows], { ...breaks, escape_formulas: true })
}

/** A negative number is no formula: numbers stay numbers. */
function cell(value: unknown): string | number {
  if (typeof value === 'number') return value
  return value === undefined || value === null ? '' : String(value)
}

/** Names of the members of an item that are texts, numbers or booleans. Throws Error for what is no list of objects. */
export function columnsOf(shape: Shape, list: string): readonly string[] {
  const member = shape.kind === 'object' ? shape.members.get(list)?.shape : undefined
  const item = member?.kind === 'list' ? member.item : undefined
  if (item?.kind !== 'object') throw new Error(`"${list}" is not a list of objects`)
  return [...item.members]
    .filter(
      ([
        ,
        {
          shape: { kind },
        },
      ]) => kind !== 'list' && kind !== 'object',
    )
    .map(([name]) => name)
}
