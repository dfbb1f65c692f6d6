import { join } from 'node:path'
import type { Logger } from '../log.js'
import type { Backend } from './backend.js'
import { LocalLocks } from './locks.js'
import { openDatabase, SqliteRows } from './sqlite-rows.js'
import { SqliteStore } from './sqlite-store.js'
import { Table } from './table.js'

/** Records in `<folder>/records.sqlite`. The caller has locked the folder, so local locks are enough. Throws StateError. */
export function openSqliteBackend(folder: string, log: Logger): Backend {
  const rows = new SqliteRows(openDatabase(join(folder, 'records.sqlite')))
  return {
    table: (namespace, options) => new Table({ store: new SqliteStore(rows), namespace, log, ...options }),
    locks: new LocalLocks(),
    close: async () => rows.close(),
  }
}
