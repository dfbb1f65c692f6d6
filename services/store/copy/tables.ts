import { COPYING, type Connection } from '../database.js'

export type Engine = 'sqlite' | 'postgres'

/** A table of a service, as the catalogue of its database has it. */
export interface Table {
  readonly name: string
  /** Columns by name, in one order for all engines. */
  readonly columns: readonly Column[]
  /** Names of the columns of the primary key, in its order. */
  readonly key: readonly string[]
  /** The column whose numbers are never given again. */
  readonly counted: string | undefined
  /** Tables whose rows its rows name. */
  readonly parents: readonly string[]
}

export interface Column {
  readonly name: string
  readonly type: 'integer' | 'text' | 'blob' | 'real'
}

const TYPES: Readonly<Record<Engine, Readonly<Record<string, Column['type']>>>> = {
  sqlite: { integer: 'integer', text: 'text', blob: 'blob', real: 'real' },
  postgres: { bigint: 'integer', text: 'text', bytea: 'blob', 'double precision': 'real' },
}

/** What a catalogue says: a row for each column. `place` is 1 for the first column of the primary key, 0 for none. */
const COLUMNS: Readonly<Record<Engine, string>> = {
  sqlite: `
    SELECT m.name AS "table", c.name AS "column", lower(c.type) AS type, c.pk AS place,
      m.sql LIKE '%AUTOINCREMENT%' AND c.pk > 0 AS counted
    FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> '${COPYING}'`,
  postgres: `
    SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, NULL) AS type,
      coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0) AS place, a.attidentity <> '' AS counted
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relnamespace = current_schema()::text::regnamespace AND c.relkind = 'r'
      AND c.relname NOT IN ('schema_version', 'identity', 'lease', '${COPYING}')`,
}

const PARENTS: Readonly<Record<Engine, string>> = {
  sqlite: `
    SELECT m.name AS "table", f."table" AS parent FROM sqlite_schema AS m JOIN pragma_foreign_key_list(m.name) AS f
    WHERE m.type = 'table'`,
  postgres: `
    SELECT c.relname AS "table", p.relname AS parent FROM pg_constraint AS f
      JOIN pg_class AS c ON c.oid = f.conrelid JOIN pg_class AS p ON p.oid = f.confrelid
    WHERE f.contype = 'f' AND f.connamespace = current_schema()::text::regnamespace`,
}

interface ColumnRow {
  readonly table: string
  readonly column: string
  readonly type: string
  readonly place: number
  readonly counted: number
}

/** The tables of a database, each behind those whose rows it names. Throws for a type that no engine shares. */
export async function tablesOf(connection: Connection, engine: Engine): Promise<Table[]> {
  const columns = await connection.prepare(COLUMNS[engine]).all<ColumnRow>()
  const parents = await connection.prepare(PARENTS[engine]).all<{ table: string; parent: string }>()
  const names = [...new Set(columns.map(({ table }) => table))].sort()
  const tables = names.map((name): Table => {
    const own = columns.filter(({ table }) => table === name)
    const key = own.filter(({ place }) => place > 0).sort((a, b) => a.place - b.place)
    return {
      name,
      columns: own
        .map(({ column, type }) => ({ name: column, type: typeOf(engine, name, column, type) }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
      key: key.map(({ column }) => column),
      counted: own.find(({ counted }) => counted)?.column,
      parents: parents
        .filter(({ table, parent }) => table === name && parent !== name)
        .map(({ parent }) => parent)
        .sort(),
    }
  })
  return inOrder(tables)
}

function typeOf(engine: Engine, table: string, column: string, type: string): Column['type'] {
  const known = TYPES[engine][type]
  if (known === undefined) throw new Error(`The column ${column} of the table ${table} has the type ${type}.`)
  return known
}

function inOrder(tables: readonly Table[]): Table[] {
  const ordered: Table[] = []
  const add = (table: Table, path: readonly Table[]): void => {
    if (ordered.includes(table)) return
    if (path.includes(table)) throw new Error(`The rows of ${table.name} and ${path.at(-1)?.name} name each other.`)
    for (const parent of tables) if (table.parents.includes(parent.name)) add(parent, [...path, table])
    ordered.push(table)
  }
  for (const table of tables) add(table, [])
  return ordered
}
