// Texts with separated values (RFC 4180), as far as they are shown.

const SEPARATORS = [',', ';', '\t', '|']

/**
 * The rows of a text; undefined for one that is no table of at least two columns.
 * @param cut true if the text goes on: its last row may not be whole
 */
export function tableOf(text, cut) {
  const head = text.slice(0, text.search(/[\r\n]|$/))
  const [separator] = SEPARATORS.map((one) => [one, head.split(one).length]).sort(([, a], [, b]) => b - a)[0]
  const rows = csvRows(text.replace(/^\ufeff/, ''), { separator, cut })
  const columns = rows[0]?.length ?? 0
  return columns > 1 && rows.length > 1 && rows.every(({ length }) => length <= columns) ? rows : undefined
}

/**
 * The rows of a text; none of one that breaks the format.
 * @param cut true if the text goes on: its last row, which may not be whole, is left out
 */
export function csvRows(text, { separator = ',', cut = false } = {}) {
  const rows = []
  let row = []
  let at = 0
  // A value is quoted, with its quotes doubled, or ends at a separator or a line.
  const value = new RegExp(
    `(?:"([^"]*(?:""[^"]*)*)"|((?:[^"${separator}\\r\\n][^${separator}\\r\\n]*)?))(${separator === '|' ? '\\|' : separator}|\\r\\n|\\n|\\r|$)`,
    'gy',
  )
  for (;;) {
    const found = value.exec(text)
    // Something behind a quoted value, or a quote that is not closed, but for one that the cut has opened.
    if (found === null) return cut && /^"(?:[^"]|"")*"?$/.test(text.slice(at)) ? rows : []
    at = value.lastIndex
    const [all, quoted, plain, end] = found
    if (all === '' && row.length === 0) return rows
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === separator) continue
    if (end === '' && cut) return rows
    rows.push(row)
    row = []
    if (end === '') return rows
  }
}
