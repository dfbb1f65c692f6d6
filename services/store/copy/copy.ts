import { COPYING, type Connection, CREATE_COPYING, type Database } from '../database.js'
import type { CopiedService, CopyLocation, CopySource, CopyTarget } from './locations.js'
import { copyRows, type Digest, digestOf, hasRows, lastNumber, setLastNumber } from './rows.js'
import { type Table, tablesOf } from './tables.js'

export interface CopiedTable extends Digest {
  /** Name of the service. */
  readonly service: string
  readonly table: string
}

export interface CopyProgress {
  readonly step: 'copying' | 'comparing'
  readonly service: string
  readonly table: string
  /** Rows so far, those of this table included. */
  readonly rows: number
}

interface Pair {
  readonly service: CopiedService
  readonly source: CopySource
  readonly target: CopyTarget
  readonly tables: readonly Table[]
}

/**
 * Copies the tables of the services to an empty location, and compares all rows. A copy that was interrupted goes on
 * where it has stopped. Until it is complete, no service starts there. Throws RangeError when the copy differs or
 * something else is at the location, and what the locations throw.
 * @param services the first one is always there
 */
export async function copyTables(
  from: CopyLocation,
  to: CopyLocation,
  services: readonly CopiedService[],
  onProgress: (progress: CopyProgress) => void,
): Promise<CopiedTable[]> {
  const pairs: Pair[] = []
  try {
    const present = await presentIn(from, to, services)
    try {
      for (const service of present) pairs.push(await openPair(from, to, service))
      await begin(pairs, from, to)
    } catch (error) {
      for (const { target } of pairs) await leave(target, to).catch(() => {})
      throw error
    }
    for (const pair of pairs) await fill(pair, from, to, onProgress)
    const copied: CopiedTable[] = []
    for (const pair of pairs) copied.push(...(await compare(pair, from, to, onProgress)))
    await from.requireHeld()
    await to.requireHeld()
    for (const { service, target } of pairs) {
      if (target.id !== undefined) from.note(service, target.id)
      to.note(service, undefined)
    }
    // The first one tells whether a copy is complete: it is the last to lose its mark.
    for (const { service, target } of [...pairs].reverse()) await complete(service, target, to)
    return copied
  } finally {
    for (const { source, target } of pairs) {
      await source.close()
      await target.close()
    }
  }
}

async function presentIn(
  from: CopyLocation,
  to: CopyLocation,
  services: readonly CopiedService[],
): Promise<CopiedService[]> {
  const present: CopiedService[] = []
  for (const service of services) {
    if (await from.has(service)) present.push(service)
    else if (await to.has(service)) throw notEmpty(to, service)
  }
  if (present.length === 0)
    throw new RangeError(`${from.name} has no tables of the services: there is nothing to copy.`)
  return present
}

async function openPair(from: CopyLocation, to: CopyLocation, service: CopiedService): Promise<Pair> {
  const source = await from.read(service)
  try {
    const tables = await tablesOf(source.connection, from.engine)
    if (await isMarked(source.connection, from))
      throw new RangeError(`The copy in ${from.name} is not complete: it cannot be copied.`)
    const target = await to.fill(service)
    try {
      const [own, theirs] = [await tablesOf(target.read, to.engine), tables].map((all) =>
        JSON.stringify(all.map(shapeOf)),
      )
      if (own !== theirs)
        throw new RangeError(`The tables of ${service.schema.owner} in ${from.name} are not those of this version.`)
      return { service, source, target, tables }
    } catch (error) {
      await leave(target, to).catch(() => {})
      await target.close()
      throw error
    }
  } catch (error) {
    await source.close()
    throw error
  }
}

function shapeOf({ name, columns, key, counted }: Table): unknown[] {
  return [name, columns, key, counted]
}

/** Marks an empty target, or finds the mark of the same copy. */
async function begin(pairs: readonly Pair[], from: CopyLocation, to: CopyLocation): Promise<void> {
  const [first] = pairs
  const source = first && (await markOf(first.target.read, to))
  if (source !== undefined && source !== from.name)
    throw new RangeError(`The copy in ${to.name} is that of ${source}, and is not complete: empty it first.`)
  // The tables that the copy had completed before it was interrupted have no mark any more.
  if (source !== undefined) return
  for (const { service, target, tables } of pairs)
    for (const table of tables) if (await hasRows(target.read, table)) throw notEmpty(to, service)
  // Resuming looks at the first one alone: when it has its mark, all have.
  for (const { target } of [...pairs].reverse()) await mark(target, to, from.name)
}

function notEmpty({ name }: CopyLocation, { schema }: CopiedService): RangeError {
  return new RangeError(`${name} has data of ${schema.owner} already: choose an empty place.`)
}

async function isMarked(connection: Connection, { engine }: CopyLocation): Promise<boolean> {
  const sql =
    engine === 'sqlite'
      ? `SELECT 1 AS one FROM sqlite_schema WHERE name = '${COPYING}'`
      : `SELECT 1 AS one WHERE to_regclass('${COPYING}') IS NOT NULL`
  return (await connection.prepare(sql).get()) !== undefined
}

async function markOf(connection: Connection, location: CopyLocation): Promise<string | undefined> {
  if (!(await isMarked(connection, location))) return undefined
  return (await connection.prepare(`SELECT source FROM ${COPYING}`).get<{ source: string }>())?.source
}

async function mark(target: Database<Connection>, location: CopyLocation, source: string): Promise<void> {
  await target.transaction(async (connection) => {
    if (await isMarked(connection, location)) await connection.prepare(`DROP TABLE ${COPYING}`).run()
    await connection.prepare(CREATE_COPYING).run()
    await connection.prepare(`INSERT INTO ${COPYING} (source) VALUES (?)`).run(source)
  })
}

/** Removes the mark of a copy that has not begun: services may make their tables there. */
async function leave(target: Database<Connection>, location: CopyLocation): Promise<void> {
  await target.transaction(async (connection) => {
    if ((await isMarked(connection, location)) && (await markOf(connection, location)) === undefined)
      await connection.prepare(`DROP TABLE ${COPYING}`).run()
  })
}

async function complete(
  { inSqlite = [] }: CopiedService,
  target: Database<Connection>,
  location: CopyLocation,
): Promise<void> {
  await target.transaction(async (connection) => {
    if (!(await isMarked(connection, location))) return
    if (location.engine === 'sqlite') for (const sql of inSqlite) await connection.prepare(sql).run()
    await connection.prepare(`DROP TABLE ${COPYING}`).run()
  })
}

async function fill(
  { service, source, target, tables }: Pair,
  from: CopyLocation,
  to: CopyLocation,
  onProgress: (progress: CopyProgress) => void,
): Promise<void> {
  if (!(await isMarked(target.read, to))) return
  for (const table of tables) {
    await copyRows(source.connection, target, table, counting('copying', service, table, onProgress))
    const last = await lastNumber(source.connection, from.engine, table)
    await target.transaction((connection) => setLastNumber(connection, to.engine, table, last))
  }
}

async function compare(
  { service, source, target, tables }: Pair,
  from: CopyLocation,
  to: CopyLocation,
  onProgress: (progress: CopyProgress) => void,
): Promise<CopiedTable[]> {
  const copied: CopiedTable[] = []
  for (const table of tables) {
    const onRows = counting('comparing', service, table, onProgress)
    const [theirs, own] = await Promise.all([
      digestOf(source.connection, table, onRows),
      digestOf(target.read, table, () => {}),
    ])
    const numbers = await Promise.all([
      lastNumber(source.connection, from.engine, table),
      lastNumber(target.read, to.engine, table),
    ])
    if (theirs.rows !== own.rows || theirs.hash !== own.hash || numbers[0] !== numbers[1]) {
      throw new RangeError(
        `The table ${table.name} of ${service.schema.owner} in ${to.name} differs from that in ${from.name}: ${own.rows} and ${theirs.rows} rows. The latter has changed since the copy began: empty the former, and copy again.`,
      )
    }
    copied.push({ service: service.schema.name, table: table.name, ...theirs })
  }
  return copied
}

function counting(
  step: CopyProgress['step'],
  { schema }: CopiedService,
  { name }: Table,
  onProgress: (progress: CopyProgress) => void,
): (count: number) => void {
  let rows = 0
  return (count) => {
    rows += count
    onProgress({ step, service: schema.name, table: name, rows })
  }
}
