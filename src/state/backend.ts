import type { Locks } from './state.js'
import type { Namespace, Table } from './table.js'

/** Where records are kept, and the locks that hold among all who keep them there. */
export interface Backend {
  table<T>(namespace: Namespace, options?: { ttl?: number }): Table<T>
  readonly locks: Locks
  /** Ends connections; no call may be under way. */
  close(): Promise<void>
}
