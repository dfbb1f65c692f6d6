import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { explained } from './folder-lock.js'
import { indexSchema } from './gateway/index-schema.js'
import { foldAll } from './gateway/store/bucket-numbers.js'
import { BodyRows, type MovedBodies, type MoveProgress, moveBodies } from './gateway/store/move-bodies.js'
import type { BodiesOptions } from './gateway/store/open-bodies.js'
import { INDEX_FILE } from './gateway/store/schema.js'
import { silentLog } from './log.js'
import { embeddedSchema } from './network/embedded/embedded-network.js'
import { kuboSchema } from './network/kubo/kubo-network.js'
import { paymentSchema } from './payment/store.js'
import { platformSchema } from './platform/store.js'
import { type CopiedTable, type CopyProgress, copyTables } from './store/copy/copy.js'
import { type CopiedService, type CopyLocation, openAlone, openFolder, openServer } from './store/copy/locations.js'
import type { Connection } from './store/database.js'
import type { AdviceOf, Examination } from './store/examine.js'

const SERVICES: readonly CopiedService[] = [
  { schema: indexSchema, file: `gateway/${INDEX_FILE}`, inSqlite: foldAll },
  { schema: embeddedSchema, file: 'network/network.db' },
  { schema: kuboSchema, file: 'kubo/network.db' },
  { schema: platformSchema, file: 'platform/platform.db' },
  { schema: paymentSchema, file: 'payment/payment.db' },
]

/**
 * Copies the tables of all services from one location to another, while no service uses either. Each is the data
 * folder of the services, or the URL of a PostgreSQL database. Throws RangeError, DatabaseUnavailableError,
 * DataInUseError and DataFolderError.
 */
export async function copyServices(
  from: string,
  to: string,
  onProgress: (progress: CopyProgress) => void,
): Promise<CopiedTable[]> {
  const source = await openLocation(from, false)
  try {
    const target = await openLocation(to, true)
    try {
      return await copyTables(source, target, SERVICES, onProgress)
    } finally {
      await target.release()
    }
  } finally {
    await source.release()
  }
}

/** Where the bodies of the embedded gateway are, and where they go. */
interface BodyMove {
  /** Folder of the services. */
  readonly data: string
  /** URL of the PostgreSQL database that has the tables, if the folder has not. */
  readonly database: string | undefined
  readonly store: BodiesOptions
  readonly to: 'store' | 'folder'
}

/**
 * Moves the bodies of objects between the data folder and an S3 store, while no service uses either. Throws as
 * `copyServices` does, and BodyError.
 */
export async function copyBodies(
  { data, database, store, to }: BodyMove,
  onProgress: (progress: MoveProgress) => void,
): Promise<MovedBodies> {
  const tables = (connection: Connection) => ({
    ...indexSchema.tables(connection),
    bodyRows: new BodyRows(connection),
  })
  const service = { schema: { ...indexSchema, tables }, file: `gateway/${INDEX_FILE}` }
  try {
    const index = await openAlone(data, database, service, silentLog)
    try {
      return await moveBodies(join(data, 'gateway'), index, store, to, onProgress)
    } finally {
      await index.close()
    }
  } catch (error) {
    throw explained(data, error)
  }
}

/**
 * Examines the databases of the services, which may run, and changes nothing. Resolves with undefined when there is
 * none. Throws RangeError, and DatabaseUnavailableError.
 * @param database URL of the PostgreSQL database that they use instead of SQLite in their data folder
 * @param advise warnings about the settings of a PostgreSQL server
 */
export async function examineDatabases(
  data: string,
  database: string | undefined,
  advise: AdviceOf,
): Promise<Examination | undefined> {
  const { examinePostgres, examineSqlite } = await import('./store/examine.js')
  if (database !== undefined) {
    return examinePostgres(
      database,
      SERVICES.map(({ schema }) => schema),
      advise,
    )
  }
  const files = SERVICES.map(({ file }) => join(data, file)).filter((file) => existsSync(file))
  for (const file of files) await examineSqlite(file)
  return files.length === 0 ? undefined : { text: `${files.length} in SQLite are whole`, warnings: [] }
}

/** True for the URL of a PostgreSQL database; anything else is a folder. */
function isDatabase(location: string): boolean {
  return /^postgres(ql)?:\/\//.test(location)
}

async function openLocation(location: string, create: boolean): Promise<CopyLocation> {
  if (isDatabase(location)) return openServer(location, SERVICES, { create }, silentLog)
  try {
    return openFolder(location, { create })
  } catch (error) {
    throw explained(location, error)
  }
}
