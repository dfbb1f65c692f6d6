import { randomUUID } from 'node:crypto'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  FILE_MODE,
  keepPrivateFile,
  makePrivateDatabase,
  makePrivateFolder,
  syncFolder,
} from '../../common/files/private-file.js'
import { cannotUse, errorCode, reasonOf, StateError } from './errors.js'
import type { StoreIdentity } from './guard.js'

export interface FolderIdentity {
  /** Id of the folder, and so of the parts that are staged in it. */
  readonly id: string
  /** Id of the store of records that belongs to the folder; absent until one is known. See StoreIdentity.epoch. */
  readonly epoch?: string | undefined
  /** The highest mark of that store which a server of this folder has seen; absent: 0. */
  readonly mark?: number
}

/** The metadata of a data folder, in `<folder>/folder.json`. */
export class FolderRecord {
  readonly #folder: string
  #kept: FolderIdentity
  /** Serializes writes, so that a later mark replaces an earlier one. */
  #written: Promise<void> = Promise.resolve()

  private constructor(folder: string, kept: FolderIdentity) {
    this.#folder = folder
    this.#kept = kept
  }

  /**
   * Reads the record, or creates one with a new id, even if another process does so at the same time. The caller holds
   * the lock of the folder. Throws StateError DATA_FOLDER.
   */
  static async open(folder: string): Promise<FolderRecord> {
    const known = await readFolderRecord(folder)
    if (known) return new FolderRecord(folder, known)
    const made = { id: randomUUID() }
    return new FolderRecord(folder, keep(folder, made) ? made : ((await readFolderRecord(folder)) ?? made))
  }

  /** A UUID that never changes. */
  get id(): string {
    return this.#kept.id
  }

  get kept(): FolderIdentity {
    return this.#kept
  }

  /** Durable once it resolves, unless the disk is full. Throws StateError DATA_FOLDER. */
  async setStore({ epoch: storeId, mark = 0 }: StoreIdentity): Promise<void> {
    const write = async () => {
      const { kept } = this
      const isNew = storeId !== kept.epoch
      if (!isNew && mark <= (kept.mark ?? 0)) return
      // Another server may have seen a later mark.
      const found = (await readFolderRecord(this.#folder)) ?? kept
      if (found.epoch === storeId && mark <= (found.mark ?? 0)) this.#kept = found
      else await this.#write({ ...kept, epoch: storeId, mark })
    }
    this.#written = this.#written.then(write, write)
    await this.#written
  }

  async #write(kept: FolderIdentity): Promise<void> {
    const file = fileOf(this.#folder)
    const draft = `${file}.${randomUUID()}.new`
    try {
      const handle = await open(draft, 'w', FILE_MODE)
      try {
        await handle.writeFile(`${JSON.stringify(kept)}\n`)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, file)
      await syncFolder(this.#folder)
    } catch (error) {
      await rm(draft, { force: true })
      mayFail(file, error)
    }
    this.#kept = kept
  }
}

/** Writes the record of a folder that has none. Returns false if another process has. */
function keep(folder: string, made: FolderIdentity): boolean {
  const file = fileOf(folder)
  try {
    return keepPrivateFile(file, `${JSON.stringify(made)}\n`)
  } catch (error) {
    mayFail(file, error)
    return true
  }
}

/** A full disk must not prevent the start of a server that can still read: a later start writes the record. */
function mayFail(file: string, error: unknown): void {
  if (['ENOSPC', 'EDQUOT', 'EROFS'].includes(errorCode(error))) return
  throw new StateError('DATA_FOLDER', `The file ${file} cannot be written: ${reasonOf(error)}`, error)
}

/**
 * Reads the record of a folder, which a running process may have locked. Resolves undefined when there is none. Throws
 * StateError DATA_FOLDER.
 */
export async function readFolderRecord(folder: string): Promise<FolderIdentity | undefined> {
  const file = fileOf(folder)
  try {
    const kept: unknown = JSON.parse(await readFile(file, 'utf8'))
    if (!isKept(kept)) throw new Error('its content is invalid')
    return kept
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new StateError('DATA_FOLDER', `The file ${file} cannot be read: ${reasonOf(error)}`, error)
  }
}

function fileOf(folder: string): string {
  return join(folder, 'folder.json')
}

function isKept(value: unknown): value is FolderIdentity {
  if (typeof value !== 'object' || value === null) return false
  const { id, epoch, mark = 0 } = value as Record<string, unknown>
  return (
    typeof id === 'string' &&
    id !== '' &&
    (epoch === undefined || typeof epoch === 'string') &&
    Number.isSafeInteger(mark)
  )
}

/**
 * Creates the folder and its parents unless they exist, and closes the folder to other accounts. Throws StateError
 * DATA_FOLDER with the reason.
 */
export function makeFolder(folder: string): string {
  return usable(folder, makePrivateFolder)
}

/**
 * Creates an empty private file for a database, or closes an existing one to other accounts. Throws as `makeFolder`.
 */
export function makeFile(file: string): string {
  return usable(file, makePrivateDatabase)
}

function usable(path: string, make: (path: string) => void): string {
  try {
    make(path)
    return path
  } catch (error) {
    throw cannotUse(path, error)
  }
}
