import { join } from 'node:path'
import { requireUsableVersion } from '../common/files/data-version.js'
import type { Logger } from '../common/log.js'
import { StateError } from './errors.js'
import { type Kept, makeFolder, readFolderRecord } from './folder-record.js'
import { GatewayWitness } from './guard.js'
import type { StateOptions, WorkerOfServer } from './open-state.js'
import type { Namespace, Table } from './records/table.js'
import type { Signals } from './signals.js'
import { lockFolder } from './sqlite/lock.js'
import { openSqliteBackend } from './sqlite/store.js'
import type { Locks } from './state.js'
import { acceptStore, type Epoch, problemOf } from './store-epoch.js'

export interface BackendOptions {
  readonly url?: string | undefined
  readonly log: Logger
  readonly timeoutMs?: number | undefined
  /** Length of the leases behind locks among proxies, ms. Default 30,000. Not used with SQLite. */
  readonly leaseMs?: number | undefined
  readonly worker?: WorkerOfServer | undefined
}

const TIMEOUT_MS = 3000

type StoreKind = 'sqlite' | 'redis' | 'postgres'

/**
 * Selects the store by itself, because `new Keyv('redis://...')` would silently keep everything in memory. The URL may
 * contain a password and must not appear in messages.
 */
export function kindOf(url: string | undefined): StoreKind {
  if (url === undefined || url === 'sqlite:') return 'sqlite'
  switch (URL.canParse(url) ? new URL(url).protocol : '') {
    case 'redis:':
    case 'rediss:':
      return 'redis'
    case 'postgres:':
    case 'postgresql:':
      return 'postgres'
    default:
      throw new StateError(
        'STATE_URL',
        'The state URL must be sqlite:, redis://host:port, rediss://host:port or postgres://user@host/database.',
      )
  }
}

/** Loads the clients of Redis and PostgreSQL only when they are needed. */
export async function openBackend(kind: StoreKind, options: BackendOptions, folder: string): Promise<Backend> {
  const { timeoutMs = TIMEOUT_MS, leaseMs } = options
  switch (kind) {
    case 'sqlite':
      return openSqliteBackend(folder, options)
    case 'redis':
      return (await import('./redis/backend.js')).openRedisBackend(options.url ?? '', options.log, timeoutMs, leaseMs)
    case 'postgres':
      return (await import('./postgres/backend.js')).openPostgresBackend(
        options.url ?? '',
        options.log,
        timeoutMs,
        leaseMs,
      )
  }
}

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

interface StoreFindings {
  /**
   * Why the store is not the one that the data folder or the gateway worked with, and the remedy; undefined when it is.
   */
  readonly problem: string | undefined
  /** Warnings about settings that may lose acknowledged records, with their remedies. */
  readonly advice: readonly string[]
}

/**
 * Examines the store of records and changes nothing. A store on a server may be in use meanwhile; one in the data
 * folder may not. Throws StateError, S3Error.
 */
export function examineStore(options: StateOptions): Promise<StoreFindings> {
  return withStore(options, async (backend, folder) => ({
    problem: await problemOf(
      backend.epochs,
      folder?.epoch,
      options.gateway && kindOf(options.url) !== 'sqlite'
        ? new GatewayWitness(options.gateway, options.log)
        : undefined,
    ),
    advice: await backend.advice().catch(() => ['The server does not reveal its settings: check its persistence.']),
  }))
}

/**
 * Accepts that the store has lost its records, for all proxies that use it. Resolves false when nothing is lost. Throws
 * like `examineStore`.
 */
export function acceptLoss(options: StateOptions): Promise<boolean> {
  return withStore(options, (backend, folder) => acceptStore(backend.epochs, folder))
}

async function withStore<R>(
  options: StateOptions,
  run: (backend: Backend, folder: Kept | undefined) => Promise<R>,
): Promise<R> {
  const kind = kindOf(options.url)
  const folder = join(options.data, 'state')
  const lock = kind === 'sqlite' ? lockFolder(makeFolder(folder)) : undefined
  try {
    requireUsableVersion(options.data)
    const record = await readFolderRecord(options.data)
    const backend = await openBackend(kind, options, folder)
    try {
      return await run(backend, record)
    } finally {
      await backend.close()
    }
  } finally {
    lock?.release()
  }
}
