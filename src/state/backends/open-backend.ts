import type { Logger } from '../../common/log.js'
import { StateError } from '../errors.js'
import type { WorkerOfServer } from '../worker-of-server.js'
import type { Backend } from './backend.js'
import { openSqliteBackend } from './sqlite-backend.js'

export interface BackendOptions {
  readonly url?: string | undefined
  readonly log: Logger
  readonly timeoutMs?: number | undefined
  /** Length of the leases behind locks among proxies, ms. Default 30,000. Not used with SQLite. */
  readonly leaseMs?: number | undefined
  readonly worker?: WorkerOfServer | undefined
}

const TIMEOUT_MS = 3000

export type StoreKind = 'sqlite' | 'redis' | 'postgres'

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
      return (await import('./redis-backend.js')).openRedisBackend(options.url ?? '', options.log, timeoutMs, leaseMs)
    case 'postgres':
      return (await import('./postgres-backend.js')).openPostgresBackend(
        options.url ?? '',
        options.log,
        timeoutMs,
        leaseMs,
      )
  }
}
