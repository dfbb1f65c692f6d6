import type { LeaseStore } from './locks/lease-store.js'
import type { Signals } from './signals/signals.js'

/** What a process needs that shares its data folder with other processes of one server, which a supervisor started. */
export interface WorkerOfServer {
  /** From 1. No two processes have the same number at a time. */
  readonly number: number
  /** Leases that the supervisor keeps. The supervisor holds the lock of the folder. */
  readonly leases: LeaseStore
  readonly signals: Signals
}
