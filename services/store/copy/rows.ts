import { createHash, type Hash } from 'node:crypto'
import type { Connection, Database, Row, Value } from '../database.js'
import type { Column, Engine, Table } from './tables.js'

/** Rows per page, and bytes of their texts and blobs behind which it gets no further row. */
const PAGE = 500
const PAGE_BYTES = 4 * 2 ** 20

/** Most rows of a table without a key, which is read at once. */
const MAX_KEYLESS = 200_000

/** Most parameters of a statement: SQLite takes 32,766. */
const MAX_PARAMETERS = 30_000

/**
 * Copies the rows of a table that the other database does not have yet, in the order of their keys: the last key there
 * says where an earlier copy has stopped.
 * @param onRows gets the number of rows of each page
 */
export async function copyRows(
  from: Connection,
  to: Database<Connection>,
  table: Table,
  onRows: (count: number) => void,
): Promise<void> {
  for await (const rows of pagesOf(from, table, await lastKey(to.read, table))) {
    await to.transaction((connection) => insert(connection, table, rows))
    onRows(rows.length)
  }
}

export interface Digest {
  readonly rows: number
  /** SHA-256 of all rows in the order of their keys; hexadecimal. Equal for equal rows in both engines. */
  readonly hash: string
}

/** @param onRows gets the number of rows of each page */
export async function digestOf(from: Connection, table: Table, onRows: (count: number) => void): Promise<Digest> {
  const hash = createHash('sha256')
  let count = 0
  for await (const rows of pagesOf(from, table)) {
    for (const row of rows) for (const { name } of table.columns) addTo(hash, row[name] ?? null)
    count += rows.length
    onRows(rows.length)
  }
  return { rows: count, hash: hash.digest('hex') }
}

export async function hasRows(connection: Connection, { name }: Table): Promise<boolean> {
  return (await connection.prepare(`SELECT 1 AS one FROM ${quoted(name)} LIMIT 1`).get()) !== undefined
}

async function* pagesOf(from: Connection, table: Table, after?: Row): AsyncGenerator<readonly Row[]> {
  const { key, name } = table
  const order = key.map((column) => `t.${quoted(column)}`).join(', ')
  const ordered = order || table.columns.map((column) => `t.${quoted(column.name)} NULLS FIRST`).join(', ')
  const most = order === '' ? MAX_KEYLESS : PAGE
  const bytes = table.columns.filter(({ type }) => type === 'text' || type === 'blob').map(bytesOf)
  const size = bytes.join(' + ') || '0'
  const some = (what: string, where: string) =>
    `SELECT ${what} FROM ${quoted(name)} AS t ${where} ORDER BY ${ordered} LIMIT ${most}`
  const columns = table.columns.map(read).join(', ')
  const page = (where: string) =>
    order === ''
      ? some(columns, where)
      : `SELECT ${columns} FROM (
           SELECT t.*, sum(${size}) OVER (ORDER BY ${order}) - (${size}) AS "bytes before" FROM (${some('t.*', where)}) AS t
         ) AS t WHERE t."bytes before" < ${PAGE_BYTES} ORDER BY ${order}`
  const first = from.prepare(page(''))
  let rows = await (after === undefined ? first.all() : next(after))
  if (order === '' && rows.length === most) throw new Error(`The table ${name} has many rows and no primary key.`)
  while (rows.length > 0) {
    yield rows
    const last = rows.at(-1)
    if (order === '' || last === undefined) return
    rows = await next(last)
  }

  function next(last: Row): Promise<Row[]> {
    const place = key.map((column) => parameter(columnOf(table, column))).join(', ')
    return from.prepare(page(`WHERE (${order}) > (${place})`)).all(...key.map((column) => last[column] ?? null))
  }
}

async function lastKey(connection: Connection, table: Table): Promise<Row | undefined> {
  const { key, name } = table
  if (key.length === 0) return undefined
  const columns = key.map((column) => read(columnOf(table, column)))
  const order = key.map((column) => `t.${quoted(column)} DESC`)
  return connection
    .prepare(`SELECT ${columns.join(', ')} FROM ${quoted(name)} AS t ORDER BY ${order.join(', ')} LIMIT 1`)
    .get()
}

async function insert(connection: Connection, { name, key, columns }: Table, rows: readonly Row[]): Promise<void> {
  const into = `INSERT INTO ${quoted(name)} (${columns.map((column) => quoted(column.name)).join(', ')}) VALUES `
  // Rows without a key are all in one page, which an earlier copy may have written.
  if (key.length === 0) await connection.prepare(`DELETE FROM ${quoted(name)}`).run()
  const row = `(${columns.map(parameter).join(', ')})`
  const most = Math.floor(MAX_PARAMETERS / columns.length)
  for (let n = 0; n < rows.length; n += most) {
    const some = rows.slice(n, n + most)
    const values = some.flatMap((one) => columns.map((column) => one[column.name] ?? null))
    await connection.prepare(into + some.map(() => row).join(', ')).run(...values)
  }
}

/** The last number that was given to a row, as a text; rows that are gone had some, too. */
export async function lastNumber(connection: Connection, engine: Engine, table: Table): Promise<string | undefined> {
  const { name, counted } = table
  if (counted === undefined) return undefined
  const found =
    engine === 'sqlite'
      ? await connection.prepare('SELECT CAST(seq AS text) AS last FROM sqlite_sequence WHERE name = ?').get<Last>(name)
      : // A row may have got its number otherwise.
        await connection
          .prepare(
            `SELECT greatest(pg_sequence_last_value(pg_get_serial_sequence(?, ?)::regclass), max(${quoted(counted)}))::text
               AS last FROM ${quoted(name)}`,
          )
          .get<Last>(quoted(name), counted)
  // SQLite says 0 for what was prepared for rows that did not come.
  return found?.last === '0' ? undefined : (found?.last ?? undefined)
}

interface Last {
  readonly last: string | null
}

export async function setLastNumber(
  connection: Connection,
  engine: Engine,
  { name, counted }: Table,
  last: string | undefined,
): Promise<void> {
  if (counted === undefined || last === undefined) return
  if (engine === 'postgres') {
    const sql = 'SELECT setval(pg_get_serial_sequence(?, ?)::regclass, CAST(? AS bigint))::text AS last'
    await connection.prepare(sql).get(quoted(name), counted, last)
    return
  }
  await connection.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(name)
  await connection.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, CAST(? AS integer))').run(name, last)
}

/** Integers as texts: those of the ledger exceed 2^53. */
function read({ name, type }: Column): string {
  return type === 'integer' ? `CAST(t.${quoted(name)} AS text) AS ${quoted(name)}` : `t.${quoted(name)}`
}

function bytesOf({ name }: Column): string {
  return `coalesce(octet_length(t.${quoted(name)}), 0)`
}

function parameter({ type }: Column): string {
  return type === 'integer' ? 'CAST(? AS bigint)' : '?'
}

function columnOf(table: Table, name: string): Column {
  return table.columns.find((column) => column.name === name) as Column
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Adds a value with its type and length, so that no two rows have the same bytes. */
function addTo(hash: Hash, value: Value): void {
  if (value === null) hash.update('n;')
  else if (value instanceof Uint8Array) hash.update(`b${value.length};`).update(value)
  else {
    const text = String(value)
    hash.update(`${typeof value === 'string' ? 's' : 'd'}${Buffer.byteLength(text)};`).update(text)
  }
}
