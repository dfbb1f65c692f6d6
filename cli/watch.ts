import { setTimeout as sleep } from 'node:timers/promises'
import { printable } from '../common/log.js'
import { EXIT_FAILURE, Failure } from './command.js'
import { type Config, ConfigError } from './config/config.js'
import { callEndpoint, type Endpoint } from './endpoint-call.js'
import { endpointOf, signerOf } from './running.js'

export interface WatchFlags {
  readonly watch?: boolean
  readonly limit: string
  readonly interval: string
  readonly endpointUrl?: string
  readonly profile?: string
}

export interface Row {
  readonly id: string
  readonly cells: readonly string[]
  readonly outcome: 'pending' | 'done' | 'failed'
}

interface Table {
  readonly head: readonly string[]
  readonly rows: readonly Row[]
  /** With `--print json`. */
  readonly document: object
}

const MAX_ROWS = 1000
const MAX_INTERVAL_SECONDS = 3600
/** Requests in a row that may fail while a server restarts. */
const MAX_FAILURES = 30
const PAGE = 100
/** The results of jobs may be long. */
const MAX_BYTES = 2 ** 24

/**
 * Prints the table that `load` resolves to. With `--watch` repeats that until no row is pending: a terminal shows the
 * table as it is, anything else gets the lines that have changed. The exit code is 1 if a pending row has failed.
 * @param load of at most so many rows
 */
export async function showTable(
  config: Config,
  own: WatchFlags,
  load: (endpoint: Endpoint, limit: number) => Promise<Table>,
): Promise<void> {
  const { limit, interval } = checked(own)
  const signer = await signerOf(config, own.profile)
  const endpoint = { url: endpointOf(config, own.endpointUrl ?? signer.endpoint), signer }
  const show = printer(config.print === 'json', own.watch === true)
  const pending = new Set<string>()
  // A deal takes longer than servers run: --watch survives their restarts, but not a wrong address.
  let failuresLeft = 0
  for (;;) {
    const table = await load(endpoint, limit).catch((error: unknown) => {
      if (failuresLeft-- <= 0 || !(error instanceof Failure)) throw error
    })
    if (table === undefined) {
      await sleep(interval * 1000)
      continue
    }
    if (own.watch === true) failuresLeft = MAX_FAILURES
    const goesOn = table.rows.some(({ outcome }) => outcome === 'pending')
    show(table, !goesOn || own.watch !== true)
    if (table.rows.some(({ id, outcome }) => outcome === 'failed' && pending.has(id))) process.exitCode = EXIT_FAILURE
    if (!goesOn || own.watch !== true) return
    for (const { id, outcome } of table.rows) if (outcome === 'pending') pending.add(id)
    await sleep(interval * 1000)
  }
}

function checked({ limit, interval }: WatchFlags) {
  const problems: string[] = []
  const number = (flag: string, text: string, most: number) => {
    const value = /^\d{1,6}$/.test(text) ? Number(text) : 0
    if (value < 1 || value > most) problems.push(`${flag} must be a whole number from 1 to ${most}, not ${text}`)
    return value
  }
  const read = {
    limit: number('--limit', limit, MAX_ROWS),
    interval: number('--interval', interval, MAX_INTERVAL_SECONDS),
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return read
}

type Show = (table: Table, last: boolean) => void

function printer(json: boolean, watch: boolean): Show {
  if (json) return changesOnly(({ document }) => [`${JSON.stringify(document)}\n`])
  if (!watch) return (table) => void process.stdout.write(lines(table).join(''))
  return process.stdout.isTTY ? redrawing() : changesOnly(lines)
}

/** Prints the lines that the table did not have when it was printed last. */
function changesOnly(linesOf: (table: Table) => string[]): Show {
  let before = new Set<string>()
  return (table) => {
    const now = linesOf(table)
    process.stdout.write(now.filter((line) => !before.has(line)).join(''))
    before = new Set(now)
  }
}

/** Rows that fit on the screen replace those before; the last table is whole. */
function redrawing(): Show {
  let drawn = 0
  return (table, last) => {
    // A terminal may not know its size.
    const columns = process.stdout.columns || 80
    const rows = process.stdout.rows || 24
    const all = lines(table)
    const shown = last
      ? all
      : all.slice(0, Math.max(rows - 2, 1)).map((line) => `${[...line.trimEnd()].slice(0, columns - 1).join('')}\n`)
    const back = drawn === 0 ? '' : `\u001b[${drawn}A\u001b[J`
    const more = all.length > shown.length ? `… and ${all.length - shown.length} more\n` : ''
    // One write: a terminal shows no half of it.
    process.stdout.write(`${back}${shown.join('')}${more}`)
    drawn = shown.length + (more === '' ? 0 : 1)
  }
}

/** A time of the server for people: in whole seconds. */
export function secondsOf(time: string): string {
  return time.replace(/\.\d+Z$/, 'Z')
}

/** The lines of a table, the head first. Names that clients chose are printed without control characters. */
function lines({ head, rows }: Table): string[] {
  const cells = [head, ...rows.map((row) => row.cells.map((cell) => (cell === '' ? '-' : printable(cell))))]
  const widths = head.map((_, column) => Math.max(...cells.map((row) => [...(row[column] ?? '')].length)))
  return cells.map(
    (row) =>
      `${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
  )
}

/**
 * Yields the items of a list that is answered in pages, as they come.
 * @param list member of the answer
 */
export async function* pagesOf(
  endpoint: Endpoint,
  path: string,
  list: string,
  query: Readonly<Record<string, string>> = {},
): AsyncGenerator<unknown> {
  for (let token: string | undefined; ; ) {
    const at: Record<string, string> = token === undefined ? {} : { 'continuation-token': token }
    const parameters = { ...query, ...at, 'max-items': String(PAGE) }
    const answer = await callEndpoint(endpoint, { method: 'GET', path, query: parameters, maxBytes: MAX_BYTES })
    const items = answer[list]
    yield* Array.isArray(items) ? items : []
    const next = answer.NextContinuationToken
    if (answer.IsTruncated !== true || typeof next !== 'string' || next === token) return
    token = next
  }
}
