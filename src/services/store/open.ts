import type { ServicesLog } from '../log.js'
import type { Database, Schema } from './database.js'
import { openSqlite } from './sqlite.js'
import type { StoreMetrics } from './store-metrics.js'

/** Where the tables of a service are. */
export interface StorePlace {
  /** Of SQLite, which is used when there is no URL; its folder exists. */
  readonly file: string
  /** URL of a PostgreSQL database, which all services may share. */
  readonly database?: string | undefined
  /** True for a service whose removals succeed on a full disk: `requireRoom` keeps space for them. Default false. */
  readonly reserve?: boolean
  readonly metrics?: StoreMetrics | undefined
}

/** Opens or creates the tables of a service. Throws as `openSqlite` and `openPostgres` do. */
export async function openStore<T>(
  schema: Schema<T>,
  { file, database, reserve = false, metrics }: StorePlace,
  log: ServicesLog,
): Promise<Database<T>> {
  if (database === undefined) return openSqlite(file, schema, reserve)
  const { openPostgres } = await import('./postgres.js')
  return openPostgres(database, schema, log, metrics?.database(schema.name))
}
