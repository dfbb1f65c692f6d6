import { join } from 'node:path'
import { type Database, openDatabase } from '../database.js'
import { accountSchema } from './accounts/schema.js'
import { offlineSchema } from './deals/offline/schema.js'
import { dealSchema, migrateDeals } from './deals/schema.js'
import { INDEX_FILE, migrate, schema } from './store/schema.js'

/**
 * Opens the index of the gateway in its folder, which must exist, and adapts it to this version. Several processes may
 * have it open.
 */
export function openIndex(folder: string): Database {
  return openDatabase(join(folder, INDEX_FILE), INDEX_SCHEMA, adaptIndex)
}

export const INDEX_SCHEMA = accountSchema + schema + dealSchema + offlineSchema

/** Converts the tables of an earlier version to what `INDEX_SCHEMA` expects. */
export function adaptIndex(db: Database): void {
  migrate(db)
  migrateDeals(db)
}
