import { CsvError, Parser } from 'csv-parse'
import { kinds, required } from './fields.js'
import { columns, TaskFileError, type TaskRow } from './task-row.js'

/** Most rows in one file. */
export const MAX_ROWS = 100_000
/** Longest row, characters. */
const MAX_RECORD = 16 * 1024

/** Another name of a column that clients use. */
const ALIASES: Readonly<Record<string, string>> = { md5_origin: 'md5' }

/** Where a member stands in a row, and what it holds. */
interface Place {
  readonly column: (typeof columns)[number][0]
  readonly member: keyof TaskRow
  readonly index: number
}

/**
 * Reads the rows of a task's CSV as they arrive: yields those that each chunk completes. The header names the columns,
 * in any order and case; columns with other names are ignored. Memory does not grow with the number of rows, but for
 * the deal CIDs: at most `MAX_ROWS`. Throws TaskFileError, and whatever `bytes` throws.
 * @param bytes UTF-8, with or without a byte order mark
 */
export async function* readTaskCsv(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<TaskRow[], undefined> {
  const rows = new Rows()
  for await (const records of readRecords(bytes)) {
    const read = records.map((record) => rows.read(record)).filter((row) => row !== undefined)
    if (read.length > 0) yield read
  }
  rows.end()
}

/** Yields the records that each chunk completes: one by one, streams cost more than the parser. */
async function* readRecords(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string[][]> {
  const parser = new Parser({
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: MAX_RECORD,
  })
  let failure: unknown
  parser.on('error', (error) => {
    failure = error
  })
  try {
    for await (const text of decode(bytes)) {
      // The parser transforms in the call; what is read here makes room for the next chunk.
      parser.write(text)
      yield taken(parser)
      if (parser.errored !== null) break
    }
    parser.end()
    for await (const record of parser as AsyncIterable<string[]>) yield [record]
  } catch (error) {
    failure ??= error
  } finally {
    parser.destroy()
  }
  if (failure !== undefined) throw failure instanceof CsvError ? explained(failure) : failure
}

function taken(parser: Parser): string[][] {
  const records: string[][] = []
  for (let record = parser.read(); record !== null; record = parser.read()) records.push(record)
  return records
}

/** The rows of one file, which come one after the other. */
class Rows {
  #row = 0
  #fields = 0
  #places: Place[] = []
  readonly #consistency = new Consistency()

  /** Returns undefined for the header. */
  read(record: readonly string[]): TaskRow | undefined {
    this.#row++
    if (this.#row === 1) {
      this.#fields = record.length
      this.#places = findColumns(record)
      return undefined
    }
    if (this.#row > MAX_ROWS + 1) {
      throw new TaskFileError(`The CSV has more than ${MAX_ROWS} rows. Make several tasks.`)
    }
    if (record.length !== this.#fields) {
      throw new TaskFileError(
        `Row ${this.#row} has ${record.length} fields, but the header names ${this.#fields} columns.`,
      )
    }
    const row = readRow(record, this.#places, this.#row)
    this.#consistency.check(row, this.#row)
    return row
  }

  end(): void {
    if (this.#row === 0) throw new TaskFileError('The CSV is empty: its first row must name the columns.')
    if (this.#row === 1) throw new TaskFileError('The CSV has a header and no rows: each row is one deal.')
  }
}

async function* decode(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const text = (chunk?: Uint8Array): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      throw new TaskFileError('The CSV is not valid UTF-8.')
    }
  }
  for await (const chunk of bytes) yield text(chunk)
  yield text()
}

function findColumns(header: readonly string[]): Place[] {
  const names = header.map((name) => name.trim().toLowerCase()).map((name) => ALIASES[name] ?? name)
  const places = columns.flatMap(([column, member]) => {
    const index = names.indexOf(column)
    if (index < 0) return []
    if (names.includes(column, index + 1)) throw new TaskFileError(`The header names the column ${column} twice.`)
    return [{ column, member, index }]
  })
  for (const [column, member] of columns) {
    if (required.has(member) && !places.some((place) => place.column === column)) {
      throw new TaskFileError(
        `The CSV has no column ${column}. Its first row must name the columns, separated by commas.`,
      )
    }
  }
  return places
}

function readRow(record: readonly string[], places: readonly Place[], row: number): TaskRow {
  const values: Partial<Record<keyof TaskRow, string | number>> = {}
  for (const { column, member, index } of places) {
    const text = record[index]?.trim() ?? ''
    const { expected, read } = kinds[column]
    if (text === '' && !required.has(member)) continue
    const value = text === '' || !isPlain(text) ? undefined : read(text)
    if (value === undefined) throw new TaskFileError(`Row ${row}, column ${column}: ${expected} is expected.`)
    values[member] = value
  }
  return values as TaskRow
}

/** False for texts with control characters, which neither the database nor a listing can hold unchanged. */
function isPlain(text: string): boolean {
  return !/\p{Cc}/u.test(text)
}

/** What rows must have in common, and what not. */
class Consistency {
  #first: TaskRow | undefined
  readonly #dealCids = new Set<string>()

  check(read: TaskRow, row: number): void {
    this.#first ??= read
    for (const [column, member] of [['uuid', 'uuid'] as const, ['miner_id', 'minerId'] as const]) {
      if (read[member] !== this.#first[member]) {
        throw new TaskFileError(`Row ${row}, column ${column}: all rows must have the same value.`)
      }
    }
    if (read.dealCid === undefined) return
    if (this.#dealCids.has(read.dealCid)) {
      throw new TaskFileError(`Row ${row}, column deal_cid: an earlier row has the same deal.`)
    }
    this.#dealCids.add(read.dealCid)
  }
}

function explained({ code, records }: CsvError): TaskFileError {
  const reason =
    code === 'CSV_MAX_RECORD_SIZE'
      ? `is longer than ${MAX_RECORD} characters`
      : code === 'CSV_QUOTE_NOT_CLOSED'
        ? 'has a quote without an end'
        : 'has a quote in the middle of a field: write it twice, and quote the field'
  return new TaskFileError(`Row ${Number(records) + 1} ${reason}.`)
}
