import { join } from 'node:path'
import type { Logger } from '../log.js'
import type { Backend } from './backend.js'
import { StateError } from './errors.js'
import { makeFolder } from './folders.js'
import { KeyvObjectRecords } from './object-records.js'
import { Spools } from './spool.js'
import { openSqliteBackend } from './sqlite-backend.js'
import { lockFolder } from './sqlite-lock.js'
import { Staging } from './staging.js'
import type { State } from './state.js'
import type { Table } from './table.js'
import { KeyvUploads } from './uploads.js'

export interface StateOptions {
  /** Folder of ours; made when absent. Parts and spool files are kept here whatever `url` says. */
  readonly data: string
  /** Where records are kept: absent or `sqlite:` for SQLite in `data`, `redis://...`, `rediss://...`, `postgres://...` or `postgresql://...`. */
  readonly url?: string | undefined
  readonly log: Logger
  /** Milliseconds since 1970; default the system's clock. Decides only which left-over bytes are old. */
  readonly now?: () => number
}

/** A completed upload is remembered this long, ms: a client repeats CompleteMultipartUpload within minutes. */
const COMPLETED_MS = 24 * 60 * 60 * 1000

/** Opens everything the proxy itself remembers. Throws StateError, with nothing left open. */
export async function openState(options: StateOptions): Promise<State> {
  const kind = kindOf(options.url)
  const folder = makeFolder(join(options.data, 'state'))
  const lock = lockFolder(folder)
  try {
    const spools = new Spools(makeFolder(join(options.data, 'spool')))
    const staging = new Staging(makeFolder(join(options.data, 'staging')))
    await spools.clear()
    const backend = await openBackend(kind, options, folder)
    return stateOf(backend, kind !== 'sqlite', spools, staging, options, lock.release)
  } catch (error) {
    lock.release()
    throw error
  }
}

function stateOf(
  backend: Backend,
  shared: boolean,
  spools: Spools,
  staging: Staging,
  options: StateOptions,
  release: () => void,
): State {
  const { locks } = backend
  let closed: Promise<void> | undefined
  /** One for each kind: clients of stores listen to their connection for each, and claims ask for theirs again and again. */
  const tables = new Map<string, Table<unknown>>()
  return {
    shared,
    objects: new KeyvObjectRecords(backend.table('object')),
    uploads: new KeyvUploads({
      uploads: backend.table('upload'),
      parts: backend.table('part'),
      completed: backend.table('completed', { ttl: COMPLETED_MS }),
      staging,
      locks,
      log: options.log,
      now: options.now ?? Date.now,
    }),
    locks,
    records: <T>(name: string) => {
      const known = tables.get(name) ?? backend.table(ownNamespace(name))
      tables.set(name, known)
      // Bound to one type by its only user.
      return known as Table<T>
    },
    spool: () => spools.create(),
    close() {
      closed ??= (async () => {
        try {
          await Promise.all([spools.close(), staging.close()])
          await backend.close()
        } finally {
          release()
        }
      })()
      return closed
    },
  }
}

function ownNamespace(name: string): `x-${string}` {
  if (!/^[a-z0-9-]{1,40}$/.test(name))
    throw new Error(`"${name}" cannot name records: use lower-case letters, digits and "-"`)
  return `x-${name}`
}

type Kind = 'sqlite' | 'redis' | 'postgres'

/** `new Keyv('redis://...')` would quietly keep everything in memory: we choose the store ourselves. The URL may hold a password: never in a message. */
function kindOf(url: string | undefined): Kind {
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

/** The clients of Redis and PostgreSQL are loaded only when they are asked for. */
async function openBackend(kind: Kind, options: StateOptions, folder: string): Promise<Backend> {
  switch (kind) {
    case 'sqlite':
      return openSqliteBackend(folder, options.log)
    case 'redis':
      return (await import('./redis-backend.js')).openRedisBackend(options.url ?? '', options.log)
    case 'postgres':
      return (await import('./postgres-backend.js')).openPostgresBackend(options.url ?? '', options.log)
  }
}
