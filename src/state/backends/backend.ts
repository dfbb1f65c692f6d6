import type { Epoch } from '../integrity/store-epoch.js'
import type { Namespace, Table } from '../records/table.js'
import type { Signals } from '../signals/signals.js'
import type { Locks } from '../state.js'

/** The store of records, and the locks shared by all processes that use it. */
export interface Backend {
  table<T>(namespace: Namespace, options?: { ttl?: number }): Table<T>
  readonly locks: Locks
  readonly signals: Signals
  /** The epoch of the store, once for each place that can be lost by itself. */
  readonly epochs: readonly Table<Epoch>[]
  /**
   * Warnings about settings of the store that may lose acknowledged records, with their remedies, one or two sentences
   * each. Rejects when the settings cannot be read.
   */
  advice(): Promise<readonly string[]>
  /** Closes connections. No call may be in progress. */
  close(): Promise<void>
}
