// Texts with separated values (RFC 4180), as far as they are shown.

const SEPARATORS = [',', ';', '\t', '|']

/**
 * The rows of a text; undefined for one that is no table of at least two columns.
 * @param cut true if the text goes on: its last row may not be whole
 */
export function tableOf(text, cut) {
  const head = text.slice(0, text.search(/[\r\n]|$/))
  const [separator] = SEPARATORS.map((one) => [one, head.split(one).length]).sort(([, a], [, b]) => b - a)[0]
  const rows = rowsOf(text.replace(/^\ufeff/, ''), separator)
  if (cut) rows.pop()
  const columns = rows[0]?.length ?? 0
  return columns > 1 && rows.length > 1 && rows.every(({ length }) => length <= columns) ? rows : undefined
}

function rowsOf(text, separator) {
  const rows = []
  let row = []
  // A value is quoted, with its quotes doubled, or ends at a separator or a line.
  const value = new RegExp(
    `(?:"([^"]*(?:""[^"]*)*)"|((?:[^"${separator}\\r\\n][^${separator}\\r\\n]*)?))(${separator === '|' ? '\\|' : separator}|\\r\\n|\\n|\\r|$)`,
    'gy',
  )
  for (;;) {
    const found = value.exec(text)
    // Something behind a quoted value, or a quote that is not closed: no table.
    if (found === null) return []
    const [all, quoted, plain, end] = found
    if (all === '' && row.length === 0) return rows
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === separator) continue
    rows.push(row)
    row = []
    if (end === '') return rows
  }
}
