import { join } from 'node:path'
import { requireUsableVersion } from '../../common/files/data-version.js'
import { type Kept, readFolderRecord } from '../files/folder-record.js'
import { makeFolder } from '../files/folders.js'
import { GatewayWitness } from '../integrity/gateway-witness.js'
import { acceptStore, problemOf } from '../integrity/store-epoch.js'
import { lockFolder } from '../locks/sqlite-lock.js'
import type { StateOptions } from '../open-state.js'
import type { Backend } from './backend.js'
import { kindOf, openBackend } from './open-backend.js'

export interface StoreFindings {
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
