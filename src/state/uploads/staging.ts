import { randomBytes, randomUUID } from 'node:crypto'
import { link, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createPrivateFile, syncFolder } from '../../common/files/private-file.js'
import type { Logging } from '../../common/log.js'
import { cannotUse, errorCode } from '../errors.js'
import { makeFolder } from '../folder-record.js'
import type { Backend } from '../open-backend.js'
import type { PartRecord, PartWriter, Spool } from '../state.js'
import { FolderStaging } from './folder-staging.js'
import type { RemoteParts } from './remote-part.js'
import { RemoteStaging } from './remote-staging.js'
import type { StagedBytes } from './staged-part.js'

/** A part that is being written, or is written and not discarded. */
export interface OpenPart extends PartWriter {
  /** Value for PartRecord.file: `<part number>-<random>`. */
  readonly file: string
}

/**
 * Where the bytes of parts wait until their upload ends. Callers pass upload ids that satisfy `isUploadId`. Every
 * failure is an S3Error. Where several proxies use one place, locks of the callers exclude the end of an upload while a
 * part of it is opened or recorded, but not while its bytes stream.
 */
export interface Staging {
  /** True when `files` is cheaper than looking for each part record that an upload could have. */
  readonly lists: boolean
  /** Prepares for the parts of an upload. Durable once it resolves. */
  makeUpload(uploadId: string): Promise<void>
  /**
   * Throws SlowDown when there is no room for it.
   * @param owner access key id of the upload's identity
   * @param length bytes that the part will have; undefined when not known. Room for the first of them is taken at once,
   *   for the rest as it arrives, so that clients cannot occupy room by lengths that they only declare.
   */
  openPart(uploadId: string, partNumber: number, owner: string, length: number | undefined): Promise<OpenPart>
  /** Throws InternalError unless all bytes of the part are present. */
  check(uploadId: string, part: PartRecord): Promise<void>
  /** Marks the bytes as belonging to a record: discarding the writer no longer removes them. */
  keep(uploadId: string, file: string): void
  /**
   * Names of staged files by part number. A number has several files while it is being replaced. Empty when the upload
   * has none.
   */
  files(uploadId: string): Promise<Map<number, string[]>>
  /**
   * Like `files`, without those that this process is writing.
   * @param before milliseconds since 1970: only files that were last written earlier
   */
  filesBefore(uploadId: string, before: number): Promise<Map<number, string[]>>
  has(uploadId: string, file: string): Promise<boolean>
  /** Throws InternalError unless all bytes are present. */
  read(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  /** Removing a missing file is no error. */
  removeFile(uploadId: string, file: string): Promise<void>
  /**
   * Abandons the parts that this process is writing and removes all files of the upload, or begins to: what is left
   * after an interruption is among `uploads`.
   * @param by who gets the lines about it
   */
  removeUpload(uploadId: string, by: Logging): Promise<void>
  /**
   * Counts the bytes that are there already. Must be called before the first part.
   * @param ownerOf access key id of the identity that began an upload; '' for an upload without a record
   */
  count(ownerOf: (uploadId: string) => Promise<string>): Promise<void>
  /** Ids of all uploads with files here. */
  uploads(): Promise<string[]>
  /** Time of the last change to the upload's files, milliseconds since 1970; undefined when there are none. */
  changed(uploadId: string): Promise<number | undefined>
  /** Abandons every part that is being written. */
  close(): Promise<void>
}

/** A place for staged parts that several proxies reach. */
export type StagingPlace =
  | { readonly folder: string }
  /** @param id 16 hexadecimal digits that identify the store of records */
  | { readonly parts: (id: string) => RemoteParts }

interface StagingParts {
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
  place: StagingPlace | undefined,
  { backend, data, amongWorkers, home, bytes, spool }: StagingParts,
): Promise<OpenedStaging> {
  if (place === undefined) {
    const staging = new FolderStaging(makeFolder(join(data, 'staging')), bytes, { shared: amongWorkers })
    return { staging, home, sharedStaging: amongWorkers }
  }
  const id = await storeId(backend)
  if ('parts' in place) {
    const staging = new RemoteStaging({ parts: place.parts(id), bytes, spool })
    return { staging, home: `gateway/${id}`, sharedStaging: true }
  }
  // One folder for each store: proxies with another store do not know the uploads and would sweep them.
  const folder = makeFolder(join(place.folder, id))
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
