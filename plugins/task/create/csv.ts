import { S3Error } from 'dealgate'

/** Most rows of a CSV, as on the embedded platform. */
const MAX_ROWS = 100_000

/**
 * The sizes of the files that a CSV of deals names in its column `file_size`, bytes, one for each row; undefined for a
 * row without. Throws S3Error InvalidArgument for a text that is not such a CSV.
 */
export function fileSizesOf(csv: string): readonly (number | undefined)[] {
  const rows = rowsOf(csv.replace(/^\ufeff/, ''))
  const header = rows.next().value
  const names = (header ?? []).map((name) => name.trim().toLowerCase())
  if (!names.includes('file_source_url'))
    throw invalid('its first row must name the columns, file_source_url among them')
  const column = names.indexOf('file_size')
  const sizes: (number | undefined)[] = []
  for (const row of rows) {
    if (row.length === 1 && row[0]?.trim() === '') continue
    if (sizes.length === MAX_ROWS) throw invalid(`it has more than ${MAX_ROWS} rows`)
    const text = column < 0 ? '' : (row[column] ?? '').trim()
    sizes.push(/^\d{1,15}$/.test(text) ? Number(text) : undefined)
  }
  return sizes
}

/**
 * The rows of a CSV: https://www.rfc-editor.org/rfc/rfc4180. A quoted cell is as long as a row of the embedded platform
 * at most: the match of an endless one takes more stack than there is.
 */
function* rowsOf(csv: string): Generator<string[], undefined> {
  const cell = /"((?:[^"]|""){0,16384})"(,|\r?\n|$)|([^",\r\n]*)(,|\r?\n|$)/y
  let row: string[] = []
  while (cell.lastIndex < csv.length) {
    const at = cell.lastIndex
    const found = cell.exec(csv)
    if (!found) throw invalid(`a quote or line end at character ${at} is not where it may be`)
    row.push(found[1] === undefined ? (found[3] ?? '') : found[1].replaceAll('""', '"'))
    if ((found[2] ?? found[4]) === ',' && cell.lastIndex < csv.length) continue
    yield row
    row = []
  }
  return undefined
}

function invalid(problem: string): S3Error {
  return new S3Error('InvalidArgument', {
    message: `The CSV cannot be used: ${problem}.`,
    fields: { ArgumentName: 'File' },
  })
}
