import { randomBytes, randomUUID } from 'node:crypto'
import { link, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createPrivateFile, syncFolder } from '../../../common/files/private-file.js'
import type { Spool } from '../../api/state.js'
import type { Backend } from '../backend.js'
import { cannotUse, errorCode } from '../errors.js'
import { makeFolder } from '../folder-record.js'
import { FolderStaging } from './folder-staging.js'
import { RemoteStaging } from './remote-staging.js'
import type { StagedBytes } from './staged-part.js'
import type { Staging, StagingLocation } from './staging.js'

interface StagingDeps {
  readonly backend: Pick<Backend, 'table'>
  /** The data folder of this process, where parts are staged by default. */
  readonly data: string
  /** True if other processes of this server use the data folder, too. */
  readonly amongWorkers: boolean
  /** Id of that folder; undefined where no other process uses the same records. */
  readonly home: string | undefined
  readonly bytes: StagedBytes
  readonly spool: () => Promise<Spool>
}

export interface OpenedStaging {
  readonly staging: Staging
  /** See UploadsOptions. */
  readonly home: string | undefined
  readonly sharedStaging: boolean
}

/** Throws StateError DATA_FOLDER, S3Error when the store of records fails. */
export async function openStaging(
  location: StagingLocation | undefined,
  { backend, data, amongWorkers, home, bytes, spool }: StagingDeps,
): Promise<OpenedStaging> {
  if (location === undefined) {
    const staging = new FolderStaging(makeFolder(join(data, 'staging')), bytes, { shared: amongWorkers })
    return { staging, home, sharedStaging: amongWorkers }
  }
  const id = await storeId(backend)
  if ('parts' in location) {
    const staging = new RemoteStaging({ parts: location.parts(id), bytes, spool })
    return { staging, home: `gateway/${id}`, sharedStaging: true }
  }
  // One folder for each store: proxies with another store do not know the uploads and would sweep them.
  const folder = makeFolder(join(location.folder, id))
  const staging = new FolderStaging(folder, bytes, { shared: true })
  return { staging, home: `folder/${await folderId(folder)}`, sharedStaging: true }
}

/** Identifies the store of records. The first proxy chooses it. */
async function storeId(backend: Pick<Backend, 'table'>): Promise<string> {
  const table = backend.table<{ id: string }>('x-staging')
  const record = await table.change('store', (known) => known ?? { id: randomBytes(8).toString('hex') })
  return (record as { id: string }).id
}

/** Identifies the folder, so that a proxy which has not mounted it does not look for parts in an empty folder. */
async function folderId(folder: string): Promise<string> {
  const file = join(folder, 'place')
  try {
    const draft = `${file}.${randomUUID()}`
    await createPrivateFile(draft, randomUUID())
    try {
      await link(draft, file)
      await syncFolder(folder)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    } finally {
      await rm(draft, { force: true })
    }
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw cannotUse(file, error)
  }
}
