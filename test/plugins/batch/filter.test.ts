import t from 'tap'
import { rowsOfFilter } from '../../../plugins/batch/filter.js'
import type { FilterSource } from '../../../plugins/batch/order.js'

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
const ms = (second: number) => Date.parse(at(second))

/** A bucket of objects that were stored a second after each other, of 10, 20 and 30 bytes. */
const contents = ['a', 'b', 'c'].map(
  (key, n) =>
    `<Contents><Key>${key}</Key><LastModified>${at(n + 1)}</LastModified><Size>${10 * (n + 1)}</Size></Contents>`,
)
const body = `<?xml version="1.0"?><ListBucketResult>${contents.join('')}<IsTruncated>false</IsTruncated></ListBucketResult>`

async function keysFor(more: Partial<FilterSource>): Promise<string[]> {
  const filter: FilterSource = {
    ...{ bucket: 'box', prefixes: [], suffixes: [], substrings: [], storageClasses: [], tags: [], dealStates: [] },
    ...{ versions: 'Current', ...more },
  }
  const send = async () => ({ status: 200, headers: {}, body })
  const keys: string[] = []
  for await (const { row } of rowsOfFilter(filter, send)) if (row) keys.push(row[1])
  return keys
}

t.test('bounds of times and sizes are exclusive', async (t) => {
  t.same(await keysFor({}), ['a', 'b', 'c'])
  t.same(await keysFor({ createdAfter: ms(1) }), ['b', 'c'])
  t.same(await keysFor({ createdBefore: ms(3) }), ['a', 'b'])
  t.same(await keysFor({ createdAfter: ms(1), createdBefore: ms(3) }), ['b'])
  t.same(await keysFor({ sizeGreaterThan: 10 }), ['b', 'c'])
  t.same(await keysFor({ sizeLessThan: 30 }), ['a', 'b'])
  t.same(await keysFor({ suffixes: ['a', 'c'], sizeGreaterThan: 10 }), ['c'])
})
