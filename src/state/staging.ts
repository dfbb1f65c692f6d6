import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Error } from '../errors/s3-error.js'
import { errorCode, noSuchUpload, stagingFailed } from './errors.js'
import { readFile } from './file-reader.js'
import { FOLDER_MODE, syncFolder } from './folders.js'
import { StagedPart } from './staged-part.js'
import type { PartRecord } from './state.js'
import { isUploadId, partNumberOf } from './upload-names.js'

/**
 * The bytes of parts on local disk: `<folder>/<upload id>/<part number>-<random>`. Callers give upload ids that passed `isUploadId`, and see to it that no
 * part is opened while its folder is removed.
 */
export class Staging {
  readonly #folder: string
  /** Parts that are being written, or are written and neither kept nor discarded yet. */
  readonly #open = new Map<string, Set<StagedPart>>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Durable when it resolves. */
  async makeUpload(uploadId: string): Promise<void> {
    try {
      await mkdir(this.#pathOf(uploadId), { mode: FOLDER_MODE, recursive: true })
      await syncFolder(this.#folder)
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  async openPart(uploadId: string, partNumber: number): Promise<StagedPart> {
    const folder = this.#pathOf(uploadId)
    const name = `${partNumber}-${randomUUID()}`
    try {
      const part = await StagedPart.open(folder, name, () => this.#forget(uploadId, part))
      const parts = this.#open.get(uploadId)
      if (parts) parts.add(part)
      else this.#open.set(uploadId, new Set([part]))
      return part
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  /** Throws InternalError unless the part's bytes are there, all of them. */
  async check(uploadId: string, part: PartRecord): Promise<void> {
    const named = partNumberOf(part.file) === part.partNumber
    const found = named ? await statOf(join(this.#pathOf(uploadId), part.file)) : undefined
    if (found?.size === part.size) return
    throw new S3Error('InternalError', {
      cause: new Error(`Part ${part.partNumber} says ${part.size} bytes; staged are ${found?.size ?? 'none'}`),
    })
  }

  /** From now on the bytes belong to a record: discarding the writer leaves them. */
  keep(uploadId: string, file: string): void {
    for (const part of this.#open.get(uploadId) ?? []) if (part.file === file) part.keep()
  }

  /** Names of staged files by part number; a number has several while it is being replaced. Empty when there is no such folder. */
  async files(uploadId: string): Promise<Map<number, string[]>> {
    const found = new Map<number, string[]>()
    for (const name of await namesIn(this.#pathOf(uploadId))) {
      const number = partNumberOf(name)
      if (number === undefined) continue
      const names = found.get(number)
      if (names) names.push(name)
      else found.set(number, [name])
    }
    return found
  }

  async has(uploadId: string, file: string): Promise<boolean> {
    return partNumberOf(file) !== undefined && (await statOf(join(this.#pathOf(uploadId), file))) !== undefined
  }

  /** Throws InternalError when the bytes are not there, all of them. */
  async read(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void> {
    if (partNumberOf(part.file) === undefined) throw stagingFailed(new Error(`${part.file} is not the name of a part`))
    const handle = await open(join(this.#pathOf(uploadId), part.file), 'r').catch((error: unknown) => {
      throw stagingFailed(error)
    })
    try {
      await readFile(handle, part.size, sink)
    } finally {
      await handle.close()
    }
  }

  /** Removing what is not there is no error. */
  async removeFile(uploadId: string, file: string): Promise<void> {
    if (partNumberOf(file) === undefined) return
    try {
      await rm(join(this.#pathOf(uploadId), file), { force: true })
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  /** Gives up the parts that are being written and removes the folder. */
  async removeUpload(uploadId: string): Promise<void> {
    const parts = [...(this.#open.get(uploadId) ?? [])]
    await Promise.all(parts.map((part) => part.end()))
    try {
      await rm(this.#pathOf(uploadId), { recursive: true, force: true })
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  /** Ids of all uploads that have a folder here. */
  async uploads(): Promise<string[]> {
    return (await namesIn(this.#folder)).filter(isUploadId)
  }

  /** When something was last made or removed in the upload's folder, ms since 1970; undefined when there is none. */
  async changed(uploadId: string): Promise<number | undefined> {
    return (await statOf(this.#pathOf(uploadId)))?.mtimeMs
  }

  /** When the file was last written, ms since 1970; undefined when there is none, or while its writer is at it. */
  async fileChanged(uploadId: string, file: string): Promise<number | undefined> {
    for (const part of this.#open.get(uploadId) ?? []) if (part.file === file) return undefined
    return (await statOf(join(this.#pathOf(uploadId), file)))?.mtimeMs
  }

  /** Gives up every part that is being written. */
  async close(): Promise<void> {
    const parts = [...this.#open.values()].flatMap((open) => [...open])
    await Promise.all(parts.map((part) => part.discard()))
  }

  #forget(uploadId: string, part: StagedPart): void {
    const parts = this.#open.get(uploadId)
    parts?.delete(part)
    if (parts?.size === 0) this.#open.delete(uploadId)
  }

  #pathOf(uploadId: string): string {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    return join(this.#folder, uploadId)
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw stagingFailed(error)
  }
}

async function statOf(path: string): Promise<{ size: number; mtimeMs: number } | undefined> {
  try {
    return await stat(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw stagingFailed(error)
  }
}
