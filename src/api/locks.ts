import type { Logging } from '../../common/log.js'

/** A lock while it is held. */
export interface HeldLock {
  /**
   * Orders the writes to one key: microseconds since 1970, a safe integer, higher than that of every earlier holder of
   * this lock unless a clock was set back. See docs/consistency.md.
   */
  readonly fence: number
  /** Throws S3Error ServiceUnavailable when another process may hold the lock. */
  ensure(): void
  /**
   * Takes another fence above `beyond`, after making sure that the lock is still held. Throws S3Error
   * ServiceUnavailable.
   */
  raise(beyond: number): Promise<void>
  /**
   * Keeps the lock when the process stops while a write under it may still be carried out: other processes get it only
   * when its lease expires.
   */
  leave(): void
}

export interface WaitLimit {
  /** Longest wait for the lock, ms; then S3Error SlowDown is thrown. Absent: no limit. */
  readonly waitMs?: number
}

/** How a lock is taken. */
export interface LockOptions extends WaitLimit {
  /** The request that takes it, whose id the lines about the lock have. Absent for work of the server itself. */
  readonly logger?: Logging | undefined
}

/**
 * Locks of keys and names. They are not reentrant: a request for a lock that overlaps one of its caller never resolves.
 */
export interface Locks {
  /** One holder at a time per bucket and key, first come first served. */
  withKey<T>(bucket: string, key: string, run: (lock: HeldLock) => Promise<T>, options?: LockOptions): Promise<T>
  /**
   * Waits for and excludes every key that begins with `prefix`, including the prefix (legacy removal of an empty
   * folder).
   */
  withSubtree<T>(bucket: string, prefix: string, run: (lock: HeldLock) => Promise<T>, options?: LockOptions): Promise<T>
  /** Like withKey, for any other name, such as an upload id or a job. */
  withName<T>(name: string, run: (lock: HeldLock) => Promise<T>, options?: LockOptions): Promise<T>
}

/** The right to run a long task that only one process at a time should run. */
export interface Lease {
  /** False once the lease is lost: another process may be running the task. */
  held(): boolean
  /** Releases the lease at once. Never rejects. */
  release(): Promise<void>
}
