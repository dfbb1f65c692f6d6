import { join } from 'node:path'
import { DiskReserve } from '../../common/disk-reserve.js'
import type { Logger } from '../../common/log.js'
import { LeaseLocks } from '../locks/lease-locks.js'
import { LocalLocks } from '../locks/locks.js'
import { Table } from '../records/table.js'
import { noSignals } from '../signals/signals.js'
import type { Backend } from './backend.js'
import type { BackendOptions } from './open-backend.js'
import { openDatabase, SqliteRows } from './sqlite-rows.js'
import { SqliteStore } from './sqlite-store.js'

/**
 * Records in `<folder>/records.sqlite`. The caller holds the lock of the folder, so local locks suffice; a
 * worker uses the leases of its supervisor, and SQLite serializes the transactions of all workers. Throws StateError.
 */
export function openSqliteBackend(
  folder: string,
  { log, leaseMs, worker }: { readonly log: Logger } & Pick<BackendOptions, 'leaseMs' | 'worker'>,
): Backend {
  const file = join(folder, 'records.sqlite')
  const reserve = new DiskReserve(file)
  const rows = new SqliteRows(openDatabase(file), reserve, worker === undefined)
  if (!reserve.hold() || reserve.isTight())
    log.warn({ folder }, 'The disk is full: free space on the disk that holds this folder.')
  const table: Backend['table'] = (namespace, options) =>
    new Table({ store: new SqliteStore(rows), namespace, ...options })
  return {
    table,
    epochs: [table('epoch')],
    locks: worker
      ? new LeaseLocks({ store: worker.leases, log, signals: worker.signals, ms: leaseMs })
      : new LocalLocks(),
    signals: worker?.signals ?? noSignals,
    advice: async () => [],
    close: async () => rows.close(),
  }
}
