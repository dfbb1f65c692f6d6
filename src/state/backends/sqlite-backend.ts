import { join } from 'node:path'
import { DiskReserve } from '../../common/disk-reserve.js'
import type { Logger } from '../../common/log.js'
import { LocalLocks } from '../locks/locks.js'
import { Table } from '../records/table.js'
import { noSignals } from '../signals/signals.js'
import type { Backend } from './backend.js'
import { openDatabase, SqliteRows } from './sqlite-rows.js'
import { SqliteStore } from './sqlite-store.js'

/**
 * Records in `<folder>/records.sqlite`. The caller holds the lock of the folder, so local locks suffice. Throws
 * StateError.
 */
export function openSqliteBackend(folder: string, log: Logger): Backend {
  const file = join(folder, 'records.sqlite')
  const reserve = new DiskReserve(file)
  const rows = new SqliteRows(openDatabase(file), reserve)
  if (!reserve.hold() || reserve.isTight())
    log.warn({ folder }, 'The disk is full: free space on the disk that holds this folder.')
  const table: Backend['table'] = (namespace, options) =>
    new Table({ store: new SqliteStore(rows), namespace, log, ...options })
  return {
    table,
    epochs: [table('epoch')],
    locks: new LocalLocks(),
    signals: noSignals,
    advice: async () => [],
    close: async () => rows.close(),
  }
}
