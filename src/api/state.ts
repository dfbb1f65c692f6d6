import type { Locks } from './locks.js'
import type { ObjectRecords } from './object-records.js'
import type { Uploads } from './uploads.js'

/** Records of one kind. Every failure is S3Error ServiceUnavailable; none is reported as "no such record". */
export interface Records<T> {
  get(key: string): Promise<T | undefined>
  /** In the order of `keys`; undefined where there is none. Reads the store once. */
  getMany(keys: readonly string[]): Promise<(T | undefined)[]>
  /** Durable once it resolves. */
  set(key: string, value: T): Promise<void>
  /**
   * For every change that depends on the record: calls `to` with the present record, and again when another proxy has
   * changed it meanwhile. Undefined stands for no record; returning the given value means no change. Resolves to the
   * present record, which is durable then. Errors of `to` pass unchanged.
   */
  change(key: string, to: (value: T | undefined) => T | undefined | Promise<T | undefined>): Promise<T | undefined>
  delete(key: string): Promise<void>
  /** All records, in no order. A record written or removed meanwhile may or may not be included. */
  entries(): AsyncIterable<[key: string, value: T]>
}

/** The state of the proxy. */
export interface State {
  /** True when other processes may use the same records. */
  readonly shared: boolean
  /** Name of this process among those that use the same data folder, for files of its own. */
  readonly process: string
  /**
   * Records of a feature or plugin. A name has lower-case letters, digits and `-`, and one user, which binds its type.
   */
  records<T>(name: string): Records<T>
  readonly objects: ObjectRecords
  readonly uploads: Uploads
  readonly locks: Locks
  /** Messages to and from the other proxies on the store. */
  readonly signals: Signals
  /** Bytes of parts that wait for the end of their upload, as far as this process knows. */
  stagedBytes(): number
  /** A spool file for a body of unknown length. */
  spool(): Promise<Spool>
  /**
   * Awaited before actions that spend money or open a bucket. Queries the store. Throws S3Error ServiceUnavailable when
   * the store of records came back empty or older or was replaced, and no operator has accepted that.
   */
  requireIntact(): Promise<void>
  /**
   * Awaited before a record is written that prevents a second payment or keeps a bucket closed. A store that is
   * restored from a backup of the time before is noticed then. Throws S3Error ServiceUnavailable.
   */
  raiseMark(): Promise<void>
  /**
   * Names the loss of records that an operator has accepted last, undefined for none. Queries the store. Throws S3Error
   * ServiceUnavailable as `requireIntact` does.
   */
  acceptedLoss(): Promise<string | undefined>
  /** The problem that `requireIntact` has found, in words, as of the last look. */
  problem(): string | undefined
  /** Abandons parts and spools that are being written, commits pending writes, and unlocks the folder. */
  close(): Promise<void>
}

/**
 * `lease`: the token of a waiter whose lease is free; `settings`: the bucket whose settings changed; `traffic`: what
 * clients have taken of their rates; `running`: their requests in progress; `plugin-<name>`: among plugins.
 */
export type Topic = 'lease' | 'settings' | 'traffic' | 'running' | `plugin-${string}`

/**
 * Messages among the proxies on one store, for waking up earlier than by a timer. A message may be lost: correctness
 * must not depend on one.
 */
export interface Signals {
  /** Sends a text without line breaks, at most 1 KiB, to all other proxies. Never fails. */
  send(topic: Topic, text: string): void
  /**
   * Calls `heard` for each message of the topic, and `missed` when some may have been lost.
   * @returns a function that ends it
   */
  on(topic: Topic, heard: (text: string) => void, missed?: () => void): () => void
}

/** A body of unknown length, on disk. */
export interface Spool {
  write(chunk: Buffer): void | Promise<void>
  /** Bytes written so far. */
  readonly size: number
  read(sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  discard(): Promise<void>
}
