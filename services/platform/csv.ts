import { Readable } from 'node:stream'
import { CsvError, Parser } from 'csv-parse'
import { stringify } from 'csv-stringify'
import { CID } from 'multiformats/cid'
import { isMinerId, isUuid } from './ids.js'
import { parsePrice } from './units.js'

/** Most rows in one file. */
export const MAX_ROWS = 100_000

/** Longest row, characters. */
const MAX_RECORD = 16 * 1024

/** Another name of a column that clients use. */
const ALIASES: Readonly<Record<string, string>> = { md5_origin: 'md5' }

interface CsvColumn {
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

class Rows {
  #row = 0
  #fields = 0
  #places: CsvColumn[] = []
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

function findColumns(header: readonly string[]): CsvColumn[] {
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

function readRow(record: readonly string[], places: readonly CsvColumn[], row: number): TaskRow {
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

type Column = (typeof columns)[number][0]

const MAX_URL = 2048
const MAX_NAME = 1024

interface Kind<T> {
  readonly expected: string
  read(text: string): T | undefined
}

const uuid: Kind<string> = {
  expected: 'a UUID',
  read: (text) => (isUuid(text.toLowerCase()) ? text.toLowerCase() : undefined),
}
const cid: Kind<string> = { expected: 'a CID', read: (text) => (isCid(text) ? text : undefined) }
const wholeNumber: Kind<number> = {
  expected: 'a whole number',
  read: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined),
}

/** The kind of each column's fields. No empty text is given to them. */
const kinds: { readonly [Name in Column]: Kind<string> | Kind<number> } = {
  uuid,
  source_file_name: {
    expected: `a name of at most ${MAX_NAME} characters`,
    read: (text) => (text.length <= MAX_NAME ? text : undefined),
  },
  miner_id: { expected: 'the id of a storage provider', read: (text) => (isMinerId(text) ? text : undefined) },
  deal_cid: cid,
  payload_cid: cid,
  file_source_url: {
    expected: `an http or https URL of at most ${MAX_URL} characters, without a password`,
    read: (text) => (isWebUrl(text) ? text : undefined),
  },
  md5: {
    expected: 'an MD5 of 32 hexadecimal digits',
    read: (text) => (/^[0-9a-f]{32}$/i.test(text) ? text.toLowerCase() : undefined),
  },
  start_epoch: wholeNumber,
  piece_cid: cid,
  file_size: { expected: 'a number of bytes', read: wholeNumber.read },
  cost: { expected: 'a decimal number of fil', read: (text) => (parsePrice(text) === undefined ? undefined : text) },
}

/** Members that a column must have a value for. */
const required: ReadonlySet<keyof TaskRow> = new Set(['fileSourceUrl'] as const)

function isCid(text: string): boolean {
  if (text.length > 256) return false
  try {
    CID.parse(text)
    return true
  } catch {
    return false
  }
}

/** Anyone may read the URLs of a public task: they hold no password. */
function isWebUrl(text: string): boolean {
  if (text.length > MAX_URL || !URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === ''
}

export interface TaskRow {
  /** Where the provider fetches the CAR: an http or https URL. */
  readonly fileSourceUrl: string
  /** UUID of the task in lower case; the same in all rows. */
  readonly uuid?: string
  readonly sourceFileName?: string
  readonly minerId?: string
  readonly dealCid?: string
  readonly payloadCid?: string
  /** MD5 of the CAR, 32 hexadecimal digits in lower case. */
  readonly md5?: string
  readonly startEpoch?: number
  readonly pieceCid?: string
  /** Size of the CAR, bytes. */
  readonly fileSize?: number
  readonly cost?: string
}

/** Names of the columns in the order in which `writeTaskCsv` writes them, and the member that each one holds. */
const columns = [
  ['uuid', 'uuid'],
  ['source_file_name', 'sourceFileName'],
  ['miner_id', 'minerId'],
  ['deal_cid', 'dealCid'],
  ['payload_cid', 'payloadCid'],
  ['file_source_url', 'fileSourceUrl'],
  ['md5', 'md5'],
  ['start_epoch', 'startEpoch'],
  ['piece_cid', 'pieceCid'],
  ['file_size', 'fileSize'],
  ['cost', 'cost'],
] as const satisfies readonly (readonly [string, keyof TaskRow])[]

/** A CSV that cannot become deals. The message names row and column where there are any, and what is expected there. */
export class TaskFileError extends Error {
  override readonly name = 'TaskFileError'
}

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
