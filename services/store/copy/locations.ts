import { existsSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { bringUpToDate, requireUsableVersion } from '../../../common/files/data-version.js'
import { makeFolders, makePrivateFolder } from '../../../common/files/private-file.js'
import { lockFolder } from '../../folder-lock.js'
import type { ServicesLog } from '../../log.js'
import { COPYING, type Connection, type Database, incompleteError, type Schema } from '../database.js'
import { markOf, openStore, requireMark, writeMark } from '../open.js'
import { openSqlite, readSqlite } from '../sqlite.js'
import type { Engine } from './tables.js'

/** The tables of a service. */
export interface CopiedService {
  readonly schema: Schema<unknown>
  /** File of SQLite, below the data folder of the services. */
  readonly file: string
  /** Statements that turn what only PostgreSQL has into what SQLite has instead, after the comparison. */
  readonly inSqlite?: readonly string[]
}

/** A database that is read and stays as it is. */
export interface CopySource {
  readonly connection: Connection
  close(): Promise<void>
}

/** Tables that are filled. */
export type CopyTarget = Database<Connection> & {
  /** In PostgreSQL, of the schema. */
  readonly id?: string
}

/** Where the tables of all services are. No service uses it meanwhile. */
export interface CopyLocation {
  /** For messages and marks, without secrets. */
  readonly name: string
  readonly engine: Engine
  has(service: CopiedService): Promise<boolean>
  /** Throws RangeError when another version of this program, or an incomplete copy, has written the tables. */
  read(service: CopiedService): Promise<CopySource>
  /** Opens the tables to fill them, and makes them where there are none. */
  fill(service: CopiedService): Promise<CopyTarget>
  /**
   * Notes where the tables of a service are from now on.
   * @param id of the schema in PostgreSQL; undefined: at this location
   */
  note(service: CopiedService, id: string | undefined): void
  /** Rejects when a service may have begun to use the location meanwhile. */
  requireHeld(): Promise<void>
  release(): Promise<void>
}

/** The data folder of the services, with SQLite. Throws DataInUseError and DataFolderError. */
export function openFolder(data: string, { create }: { readonly create: boolean }): CopyLocation {
  if (create) makeFolders(data)
  else if (!existsSync(data)) throw new RangeError(`There is no folder ${data}.`)
  const unlock = lockFolder(data)
  try {
    if (create) bringUpToDate(data)
    else requireUsableVersion(data)
  } catch (error) {
    unlock()
    throw error
  }
  const fileOf = ({ file }: CopiedService) => join(data, file)
  return {
    name: resolve(data),
    engine: 'sqlite',
    has: async (service) => existsSync(fileOf(service)),
    async read(service) {
      const { connection, close } = readSqlite(fileOf(service))
      try {
        await requireVersion(connection, VERSION.sqlite, service)
        return { connection, close: async () => close() }
      } catch (error) {
        close()
        throw error
      }
    },
    async fill(service) {
      const file = fileOf(service)
      makePrivateFolder(dirname(file))
      return openSqlite(file, filling(service))
    },
    note(service, id) {
      if (id === undefined) rmSync(markOf(fileOf(service)), { force: true })
      else writeMark(fileOf(service), id)
    },
    requireHeld: async () => {},
    release: async () => unlock(),
  }
}

/** A PostgreSQL database. Throws DatabaseUnavailableError, and RangeError when services or another copy use it. */
export async function openServer(
  url: string,
  services: readonly CopiedService[],
  { create }: { readonly create: boolean },
  log: ServicesLog,
): Promise<CopyLocation> {
  const { openPostgres, readPostgres } = await import('../postgres.js')
  const { holdPostgres } = await import('./hold.js')
  const schemas = services.map(({ schema }) => schema)
  const held = await holdPostgres(url, schemas, { starts: create })
  const { host, pathname } = new URL(url)
  return {
    name: `postgres://${host}${pathname}`,
    engine: 'postgres',
    has: ({ schema }) => held.has(schema),
    async read(service) {
      const db = readPostgres(url, filling(service), log)
      try {
        await requireVersion(db.read, VERSION.postgres, service)
        return { connection: db.read, close: () => db.close() }
      } catch (error) {
        await db.close()
        throw error
      }
    },
    fill: (service) => openPostgres(url, filling(service), log),
    note: () => {},
    requireHeld: () => held.require(),
    release: () => held.release(),
  }
}

/** The tables of one service, which nothing else uses meanwhile. */
export interface ExclusiveTables<T> {
  readonly db: Database<T>
  /** Rejects when a service may have begun to use them meanwhile. */
  requireHeld(): Promise<void>
  close(): Promise<void>
}

/**
 * Opens the tables of a service to change rows, while no process of it runs. Throws as `openFolder` and `openServer`.
 * @param data folder of the services
 * @param database URL of the PostgreSQL database that has the tables, if the folder has not
 */
export async function openAlone<T>(
  data: string,
  database: string | undefined,
  { schema, file }: { readonly schema: Schema<T>; readonly file: string },
  log: ServicesLog,
): Promise<ExclusiveTables<T>> {
  const location = openFolder(data, { create: false })
  const path = join(data, file)
  try {
    if (database === undefined) {
      if (!(await location.has({ schema, file })))
        throw new RangeError(`${location.name} has no tables of ${schema.owner}: name the database that has them.`)
      const db = await openStore(schema, { file: path }, log)
      return {
        db,
        requireHeld: () => location.requireHeld(),
        close: () => db.close().finally(() => location.release()),
      }
    }
    const { holdPostgres } = await import('./hold.js')
    const held = await holdPostgres(database, [schema], { starts: false })
    try {
      const db = await openHeld(database, schema, path, await held.has(schema), log)
      return {
        db,
        requireHeld: () => held.require(),
        close: () =>
          db
            .close()
            .finally(() => held.release())
            .finally(() => location.release()),
      }
    } catch (error) {
      await held.release()
      throw error
    }
  } catch (error) {
    await location.release()
    throw error
  }
}

async function openHeld<T>(
  url: string,
  schema: Schema<T>,
  file: string,
  isThere: boolean,
  log: ServicesLog,
): Promise<Database<T>> {
  if (!isThere) throw new RangeError(`The database has no tables of ${schema.owner}.`)
  const { readPostgres } = await import('../postgres.js')
  const asCopy = { ...schema, filling: true, exclusive: false } as const
  const look = readPostgres(url, { ...asCopy, tables: (connection) => connection }, log)
  try {
    await requireVersion(look.read, 'SELECT version FROM schema_version', { schema, file })
    const marked = `SELECT 1 AS one WHERE to_regclass('${COPYING}') IS NOT NULL`
    if ((await look.read.prepare(marked).get()) !== undefined) throw incompleteError(schema)
    const identity = await look.read.prepare('SELECT id FROM identity').get<{ id: string }>()
    requireMark(markOf(file), identity?.id ?? '', schema)
  } finally {
    await look.close()
  }
  return readPostgres(url, asCopy, log)
}

function filling({ schema }: CopiedService): Schema<Connection> {
  return { ...schema, tables: (connection) => connection, filling: true, exclusive: false }
}

/**
 * Opens the tables of a service to read them, while its processes may run. Throws RangeError when another version has
 * written them.
 * @param database URL of the PostgreSQL database that has the tables, if the file has not
 */
export async function readIndex<T>(
  schema: Schema<T>,
  file: string,
  database: string | undefined,
  log: ServicesLog,
): Promise<{ readonly read: T; close(): Promise<void> }> {
  if (database === undefined) {
    const { connection, close } = readSqlite(file)
    try {
      await requireVersion(connection, VERSION.sqlite, { schema, file })
      return { read: schema.tables(connection), close: async () => close() }
    } catch (error) {
      close()
      throw error
    }
  }
  const { readPostgres } = await import('../postgres.js')
  const versions = readPostgres(database, { ...schema, tables: (connection) => connection }, log)
  try {
    await requireVersion(versions.read, VERSION.postgres, { schema, file })
  } finally {
    await versions.close()
  }
  const db = readPostgres(database, schema, log)
  return { read: db.read, close: () => db.close() }
}

const VERSION = {
  sqlite: 'SELECT user_version AS version FROM pragma_user_version',
  postgres: 'SELECT version FROM schema_version',
}

async function requireVersion(connection: Connection, sql: string, { schema }: CopiedService): Promise<void> {
  const { version } = (await connection.prepare(sql).get<{ version: number }>()) ?? { version: 0 }
  if (version === schema.steps.length) return
  throw new RangeError(
    `Another version of dealgate has written the data of ${schema.owner}: start this version with it once, or copy with that one.`,
  )
}
