import { Readable } from 'node:stream'
import { stringify } from 'csv-stringify'
import { columns, type TaskRow } from './task-row.js'

/**
 * Writes a header and one row per deal in the form of RFC 4180, with all columns that clients of task platforms know.
 * Memory does not grow with the number of rows.
 */
export function writeTaskCsv(rows: Iterable<TaskRow> | AsyncIterable<TaskRow>): AsyncIterable<string> {
  const text = stringify({
    header: true,
    columns: columns.map(([header, key]) => ({ key, header })),
    record_delimiter: '\r\n',
    encoding: 'utf8',
  })
  text.setEncoding('utf8')
  const source = Readable.from(plain(rows))
  source.on('error', (error) => text.destroy(error))
  text.on('close', () => source.destroy())
  return source.pipe(text)
}

async function* plain(rows: Iterable<TaskRow> | AsyncIterable<TaskRow>): AsyncGenerator<TaskRow> {
  for await (const row of rows) yield { ...row, ...plainName(row) }
}

/** Readers refuse control characters, which keys of objects may have: a name gets them percent-encoded. */
function plainName({ sourceFileName }: TaskRow): Pick<TaskRow, 'sourceFileName'> {
  if (sourceFileName === undefined) return {}
  return { sourceFileName: sourceFileName.replace(/\p{Cc}/gu, encodeURIComponent) }
}
