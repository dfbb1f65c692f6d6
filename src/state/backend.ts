import type { Logger } from '../../common/log.js'
import type { QuotaBounds } from '../../common/quota.js'
import type { KnownStores } from '../api/known-stores.js'
import type { Locks } from '../api/locks.js'
import type { Signals } from '../api/state.js'
import type { StoreIdentity } from './guard.js'
import type { LeaseStore } from './locks/memory-leases.js'
import type { Namespace, Table } from './records/table.js'
import type { StagingLocation } from './uploads/staging.js'

export interface Backend {
  table<T>(namespace: Namespace, options?: { ttl?: number }): Table<T>
  readonly locks: Locks
  readonly signals: Signals
  /** The identity of the store, once for each place that can be lost by itself. */
  readonly identities: readonly Table<StoreIdentity>[]
  /**
   * Warnings about settings of the store that may lose acknowledged records, with their remedies, one or two sentences
   * each. Rejects when the settings cannot be read.
   */
  advice(): Promise<readonly string[]>
  /** Closes connections. No call may be in progress. */
  close(): Promise<void>
}

/** What an engine opens the records with. */
export interface EngineOptions {
  /** Of the database, with the password, which must not appear in messages. */
  readonly url: string
  /** For files of the engine. The caller holds its lock. */
  readonly folder: string
  readonly log: Logger
  /** Longest wait for the answer to a call, ms. Not used with SQLite. */
  readonly timeoutMs: number
  /** Length of the leases behind locks among proxies, ms; default 30,000. Not used with SQLite alone. */
  readonly leaseMs?: number | undefined
  readonly worker?: WorkerOfServer | undefined
}

/**
 * Opens the records: the default export of an engine. Rejects with StateError, with STATE_UNREACHABLE when the database
 * does not answer or refuses the connection.
 */
export type OpenEngine = (options: EngineOptions) => Promise<Backend>

export interface StateOptions {
  /** The data folder; created when absent. Always holds spool files, whatever `url` says. */
  readonly data: string
  /** In a process that shares the folder with other processes of one server. */
  readonly worker?: WorkerOfServer | undefined
  /** Where parts of multipart uploads wait; default the data folder. */
  readonly staging?: StagingLocation | undefined
  /**
   * The store of records: absent or `sqlite:` for SQLite in `data`, `redis://...`, `rediss://...`, `postgres://...` or
   * `postgresql://...`.
   */
  readonly url?: string | undefined
  readonly log: Logger
  /** Longest wait for the answer to a call to a database, ms. Default 3000. */
  readonly timeoutMs?: number | undefined
  /** Length of the leases behind locks among proxies, ms. Default 30,000. Not used with SQLite. */
  readonly leaseMs?: number | undefined
  /**
   * The stores that the gateway knows, queried about a shared store that the data folder does not know. Absent: such a
   * store counts as new. SQLite lies in the data folder, so a new folder has a new store.
   */
  readonly gateway?: KnownStores | undefined
  /** Bounds of the bytes of parts on disk; default `defaultStagedBounds`. */
  readonly staged?: QuotaBounds | undefined
  /** Takes the time of each call to the store of records, seconds. */
  readonly onCall?: ((seconds: number) => void) | undefined
  /** Milliseconds since 1970. Default: the system clock. Only decides which leftover bytes are old. */
  readonly now?: () => number
}

/** What a process needs that shares its data folder with other processes of one server, which a supervisor started. */
export interface WorkerOfServer {
  /** From 1. No two processes have the same number at a time. */
  readonly number: number
  /** Leases that the supervisor keeps. The supervisor holds the lock of the folder. */
  readonly leases: LeaseStore
  readonly signals: Signals
}
