import { join } from 'node:path'
import { requireUsableVersion } from '../../common/files/data-version.js'
import type { Backend, OpenEngine, StateOptions } from './backend.js'
import { StateError } from './errors.js'
import { type FolderIdentity, makeFolder, readFolderRecord } from './folder-record.js'
import { GatewayWitness } from './guard.js'
import { lockFolder } from './sqlite-lock.js'
import { acceptStore, problemOf } from './store-check.js'

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

type BackendOptions = Pick<StateOptions, 'url' | 'log' | 'timeoutMs' | 'leaseMs' | 'worker'>

/**
 * Loads the engine of a database by the name of its entry, and only when it is needed: it stands beside the door.
 * @param folder for files of the engine; the caller holds its lock
 */
export async function openBackend(kind: StoreKind, options: BackendOptions, folder: string): Promise<Backend> {
  const { url = 'sqlite:', log, timeoutMs = TIMEOUT_MS, leaseMs, worker } = options
  const engine = (await import(`dealgate/engines/${kind}`)) as { readonly default: OpenEngine }
  return engine.default({ url, folder, log, timeoutMs, leaseMs, worker })
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
      backend.identities,
      folder,
      options.gateway && kindOf(options.url) !== 'sqlite'
        ? new GatewayWitness(options.gateway, options.log, true)
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
  return withStore(options, (backend, folder) => acceptStore(backend.identities, folder))
}

async function withStore<R>(
  options: StateOptions,
  run: (backend: Backend, folder: FolderIdentity | undefined) => Promise<R>,
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
