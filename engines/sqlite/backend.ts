import { join } from 'node:path'
import { DiskReserve } from '../../common/disk-reserve.js'
import type { Backend, EngineOptions } from '../../src/state/backend.js'
import { LocalLocks } from '../../src/state/locks/locks.js'
import { type SwapStore, Table } from '../../src/state/records/table.js'
import { noSignals } from '../../src/state/signals.js'
import { LeaseLocks } from '../lease-locks.js'
import { openDatabase, SqliteRows } from './rows.js'

/**
 * Records in `<folder>/records.sqlite`. The caller holds the lock of the folder, so local locks suffice; a
 * worker uses the leases of its supervisor, and SQLite serializes the transactions of all workers. Throws StateError.
 */
export async function openSqliteBackend({ folder, log, leaseMs, worker }: EngineOptions): Promise<Backend> {
  const file = join(folder, 'records.sqlite')
  const database = openDatabase(file)
  // The reserve is made after the file is open: the opening may have needed what an earlier process has kept.
  const reserve = new DiskReserve(file)
  const rows = new SqliteRows(database, reserve, worker === undefined)
  if (!reserve.hold() || reserve.isTight())
    log.warn({ folder }, 'The disk is full: free space on the disk that holds this folder.')
  const table: Backend['table'] = (namespace, options) =>
    new Table({ store: new SqliteStore(rows), namespace, ...options })
  return {
    table,
    identities: [table('epoch')],
    locks: worker
      ? new LeaseLocks({ store: worker.leases, log, signals: worker.signals, ms: leaseMs })
      : new LocalLocks(),
    signals: worker?.signals ?? noSignals,
    advice: async () => [],
    close: async () => rows.close(),
  }
}

type Listener = Parameters<SwapStore['on']>[1]

const PAGE = 500

/**
 * Keyv's storage adapter (https://keyv.org/docs/keyv/#custom-storage-adapters) for SQLite. One per Keyv instance,
 * because Keyv writes its namespace into its adapter; all share one `SqliteRows`. Throws errors and never emits them,
 * so that none is missed. Keys arrive with Keyv's prefix `<namespace>:`.
 */
class SqliteStore implements SwapStore {
  /** Keyv offers its iterator only for adapters with a known dialect. */
  readonly opts = { dialect: 'sqlite', url: 'sqlite:' }
  namespace: string | undefined = undefined
  readonly #rows: SqliteRows

  constructor(rows: SqliteRows) {
    this.#rows = rows
  }

  on(_event: string, _listener: Listener): this {
    return this
  }

  isEmpty(kind: string): boolean {
    return this.#rows.isEmpty(kind)
  }

  // Casts, because Keyv leaves the type of the parsed text to the caller.
  async get<Value>(key: string): Promise<Value | undefined> {
    return this.#rows.get(key) as Value | undefined
  }

  async getMany<Value>(keys: string[]): Promise<(Value | undefined)[]> {
    return this.#rows.getMany(keys) as (Value | undefined)[]
  }

  /** @param ttl ms; absent or 0: no expiry */
  async set(key: string, value: string, ttl?: number): Promise<boolean> {
    await this.#rows.put(key, value, ttl ? Date.now() + ttl : undefined)
    return true
  }

  swap(key: string, expected: string | undefined, next: string | undefined): Promise<boolean> {
    return this.#rows.swap(key, expected, next)
  }

  setFenced(key: string, next: string | undefined, fence: number, ttl?: number): Promise<number | undefined> {
    return this.#rows.setFenced(key, next, fence, ttl === undefined ? undefined : Date.now() + ttl)
  }

  delete(key: string): Promise<boolean> {
    return this.#rows.remove(key)
  }

  /** True when at least one of them existed. */
  async deleteMany(keys: string[]): Promise<boolean> {
    const removed = await all(keys.map((key) => this.#rows.remove(key)))
    return removed.includes(true)
  }

  async clear(): Promise<void> {
    for await (const [key] of this.iterator(this.namespace)) await this.#rows.remove(key)
  }

  // Keyv declares the pairs as arrays of key or value.
  async *iterator<Value>(namespace?: string): AsyncGenerator<[string, Value], void> {
    // ';' is the character after ':'; no key lies beyond U+10FFFF.
    let after = namespace ? `${namespace}:` : ''
    const before = namespace ? `${namespace};` : '\u{10ffff}\u{10ffff}'
    for (;;) {
      const rows = this.#rows.page(after, before, PAGE)
      for (const row of rows) yield [row.key, row.value as Value]
      const last = rows.at(-1)
      if (!last || rows.length < PAGE) return
      after = last.key
    }
  }

  /** The rows outlive the adapter. The code that opened them closes them. */
  async disconnect(): Promise<void> {}
}

/** Waits for all promises even if one fails, so that nothing is in progress when the error is seen. */
async function all<T>(promises: Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises)
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
}
