import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { keepPrivateFile, writePrivateFile } from '../../common/files/private-file.js'
import type { ServicesLog } from '../log.js'
import type { Database, Schema, Settings } from './database.js'
import { openSqlite } from './sqlite.js'
import type { StoreMetrics } from './store-metrics.js'

/** Where the tables of a service are. */
export interface StoreLocation {
  /** File of SQLite, which is used when there is no URL. Its folder has further files of the service. */
  readonly file: string
  /** URL of a PostgreSQL database, which all services may share. */
  readonly database?: string | undefined
  /** True for a service whose removals succeed on a full disk: `requireRoom` keeps space for them. Default false. */
  readonly reserve?: boolean
  readonly metrics?: StoreMetrics | undefined
}

/**
 * Opens or creates the tables of a service. Throws as `openSqlite` and `openPostgres` do, and RangeError when the
 * folder belongs to other tables: a service removes files that its tables do not name.
 */
export async function openStore<T>(
  schema: Schema<T>,
  { file, database, reserve = false, metrics }: StoreLocation,
  log: ServicesLog,
): Promise<Database<T>> {
  const mark = markOf(file)
  if (database === undefined) {
    if (existsSync(mark)) {
      throw new RangeError(
        `The tables of ${schema.owner} are in PostgreSQL: start with --database. To use the older tables of the data folder, and lose the files that these do not name, remove ${resolve(mark)}.`,
      )
    }
    return openSqlite(file, schema, reserve)
  }
  if (existsSync(file) && !existsSync(mark)) {
    throw new RangeError(
      `The tables of ${schema.owner} are in the data folder: copy them with \`dealgate state copy\`, or choose another folder.`,
    )
  }
  const { openPostgres } = await import('./postgres.js')
  const db = await openPostgres(database, schema, log, metrics?.database(schema.name))
  try {
    // A program beside the service may have no folder.
    if (existsSync(dirname(file))) requireMark(mark, db.id, schema)
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}

/** Throws RangeError when the folder belongs to other tables; makes it belong to these where it belongs to none. */
export function requireMark(mark: string, id: string, { owner }: Pick<Schema<unknown>, 'owner'>): void {
  // Nothing is written at later starts: the disk may be full.
  if (!existsSync(mark) && keepPrivateFile(mark, id)) forAll(mark)
  if (readFileSync(mark, 'utf8') === id) return
  throw new RangeError(
    `The data folder belongs to other tables of ${owner} than those of this database. If these are the same, copied, remove ${resolve(mark)}.`,
  )
}

/** Notes that the tables of a folder are in PostgreSQL. */
export function writeMark(file: string, id: string): void {
  const mark = markOf(file)
  writePrivateFile(mark, id)
  forAll(mark)
}

/** A command of root may have made it for a service that has fewer rights. */
function forAll(mark: string): void {
  chmodSync(mark, 0o644)
}

/**
 * The file that says that the tables are in PostgreSQL, and in which schema: it has the id of that.
 * @param file of SQLite
 */
export function markOf(file: string): string {
  return `${file}.postgres`
}

/** Name of the file that says to which database a folder belongs, and of the setting with the same content. */
const FOLDER = 'folder'

/**
 * Throws RangeError unless the folder is the one that all processes of the database use: what one of them has written
 * there, the others must find. The first start makes it so. Nothing is checked for a database of one process.
 * @param owner for the message, such as `the storage payment service`
 */
export async function requireSharedFolder(
  db: Database<{ readonly settings: Settings }>,
  folder: string,
  owner: string,
): Promise<void> {
  if (!db.shared) return
  const file = join(folder, FOLDER)
  // Before the database has it: a crash between the two leaves a folder that the next start takes.
  const isNew = !existsSync(file) && keepPrivateFile(file, randomBytes(16).toString('hex'))
  const mark = readFileSync(file, 'utf8')
  const kept = await db.transaction(async ({ settings }) => {
    const known = await settings.find(FOLDER)
    if (known === undefined) await settings.add(FOLDER, Buffer.from(mark))
    return known === undefined ? mark : Buffer.from(known).toString()
  })
  if (kept === mark) return
  if (isNew) rmSync(file)
  throw new RangeError(
    `The files of ${owner} in this database are in another folder than ${resolve(folder)}: mount that one here.`,
  )
}
