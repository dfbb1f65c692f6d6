import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { explained, openBeside } from './folder-lock.js'
import { indexSchema } from './gateway/index-schema.js'
import { NamedBodies } from './gateway/store/body-rows.js'
import { type BodiesOptions, readBodies } from './gateway/store/open-bodies.js'
import { INDEX_FILE } from './gateway/store/schema.js'
import { type Verification, type VerifyProgress, verifyBodies } from './gateway/store/verify-bodies.js'
import { silentLog } from './log.js'
import { readIndex } from './store/copy/locations.js'
import type { Connection } from './store/database.js'
import { openStore } from './store/open.js'

interface VerifyOptions {
  /** Folder of the services. */
  readonly data: string
  /** URL of the PostgreSQL database that has the tables, if the folder has not. */
  readonly database: string | undefined
  /** The store that has bodies, if there is one. */
  readonly bodies: BodiesOptions | undefined
  /** Adds checksums to bodies of an earlier version, and renews marks of a store; default: changes nothing. */
  readonly keeps: boolean
}

const schema = {
  ...indexSchema,
  tables: (connection: Connection) => ({
    ...indexSchema.tables(connection),
    namedBodies: new NamedBodies(connection),
  }),
}

/**
 * Reads all bodies of the embedded gateway, which may run. Resolves with undefined when it has no tables yet. Throws
 * RangeError, BodyError, DatabaseUnavailableError and DataFolderError.
 */
export async function verifyData(
  { data, database, bodies, keeps }: VerifyOptions,
  onProgress: (progress: VerifyProgress) => void,
): Promise<Verification | undefined> {
  const file = join(data, 'gateway', INDEX_FILE)
  if (database === undefined && !existsSync(file)) return undefined
  const folder = join(data, 'gateway')
  try {
    const index = await readIndex(schema, file, database, silentLog)
    try {
      const reader = await readBodies(folder, index.read, bodies)
      try {
        if (!keeps) return await verifyBodies(index.read, reader, undefined, onProgress)
        const db = await openBeside(data, () => openStore(schema, { file, database }, silentLog))
        try {
          return await verifyBodies(index.read, reader, db, onProgress)
        } finally {
          await db.close()
        }
      } finally {
        await reader.close()
      }
    } finally {
      await index.close()
    }
  } catch (error) {
    throw explained(data, error)
  }
}
