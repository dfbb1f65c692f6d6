import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Error } from '../../common/errors/s3-error.js'
import { FOLDER_MODE } from '../../common/files/private-file.js'
import { syncFolder } from '../../common/files/sync-folder.js'
import { errorCode, noSuchUpload, stagingFailed } from '../errors.js'
import { readFile } from '../files/file-reader.js'
import type { PartRecord } from '../state.js'
import type { StagedBytes } from './staged-bytes.js'
import { StagedPart } from './staged-part.js'
import { isUploadId, partNumberOf } from './upload-names.js'

/** Bytes of a part that room is taken for before they arrive, at most. */
const ROOM_AHEAD = 64 * 1024 * 1024

/**
 * The bytes of parts on local disk: `<folder>/<upload id>/<part number>-<random>`. Callers pass upload ids that satisfy
 * `isUploadId`, and open no part while its folder is removed.
 */
export class Staging {
  readonly #folder: string
  readonly #bytes: StagedBytes
  /** Parts that are being written, or are written and neither kept nor discarded. */
  readonly #open = new Map<string, Set<StagedPart>>()

  /** While `count` looks: bytes that were removed since it began, by upload. */
  #removedMeanwhile: Map<string, number> | undefined

  /** @param bytes what the parts have on disk together */
  constructor(folder: string, bytes: StagedBytes) {
    this.#folder = folder
    this.#bytes = bytes
  }

  /** Durable once it resolves. */
  async makeUpload(uploadId: string): Promise<void> {
    try {
      await mkdir(this.#pathOf(uploadId), { mode: FOLDER_MODE, recursive: true })
      await syncFolder(this.#folder)
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  /**
   * Throws SlowDown when there is no room for it.
   * @param owner access key id of the upload's identity
   * @param length bytes that the part will have; 0 when not known. Room for the first of them is taken at once, for the
   *   rest as it arrives, so that clients cannot occupy room by lengths that they only declare.
   */
  async openPart(uploadId: string, partNumber: number, owner: string, length: number): Promise<StagedPart> {
    const folder = this.#pathOf(uploadId)
    const name = `${partNumber}-${randomUUID()}`
    const room = {
      take: (bytes: number) => this.#bytes.take(uploadId, owner, bytes),
      give: (bytes: number) => this.#bytes.give(uploadId, bytes),
    }
    const taken = Math.min(length, ROOM_AHEAD)
    room.take(taken)
    try {
      const gone = () => this.#forget(uploadId, part)
      const part = await StagedPart.open(folder, name, { room, taken, gone })
      const parts = this.#open.get(uploadId)
      if (parts) parts.add(part)
      else this.#open.set(uploadId, new Set([part]))
      return part
    } catch (error) {
      room.give(taken)
      throw stagingFailed(error)
    }
  }

  /** Throws InternalError unless all bytes of the part are present. */
  async check(uploadId: string, part: PartRecord): Promise<void> {
    const named = partNumberOf(part.file) === part.partNumber
    const found = named ? await statOf(join(this.#pathOf(uploadId), part.file)) : undefined
    if (found?.size === part.size) return
    throw new S3Error('InternalError', {
      cause: new Error(`Part ${part.partNumber} says ${part.size} bytes; staged are ${found?.size ?? 'none'}`),
    })
  }

  /** Marks the bytes as belonging to a record: discarding the writer no longer removes them. */
  keep(uploadId: string, file: string): void {
    for (const part of this.#open.get(uploadId) ?? []) if (part.file === file) part.keep()
  }

  /**
   * Names of staged files by part number. A number has several files while it is being replaced. Empty when there is no
   * such folder.
   */
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

  /** Throws InternalError unless all bytes are present. */
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

  /** Removing a missing file is no error. */
  async removeFile(uploadId: string, file: string): Promise<void> {
    if (partNumberOf(file) === undefined) return
    const path = join(this.#pathOf(uploadId), file)
    try {
      const size = (await statOf(path))?.size ?? 0
      await rm(path, { force: true })
      this.#give(uploadId, size)
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  /** Abandons the parts that are being written and removes the folder. */
  async removeUpload(uploadId: string): Promise<void> {
    const parts = [...(this.#open.get(uploadId) ?? [])]
    await Promise.all(parts.map((part) => part.end()))
    try {
      await rm(this.#pathOf(uploadId), { recursive: true, force: true })
      this.#give(uploadId, Number.POSITIVE_INFINITY)
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  /**
   * Counts the bytes that earlier runs have left. Must be called before the first part.
   * @param ownerOf access key id of the identity that began an upload; '' for an upload without a record
   */
  async count(ownerOf: (uploadId: string) => Promise<string>): Promise<void> {
    const found: { uploadId: string; owner: string; bytes: number }[] = []
    const removed = new Map<string, number>()
    this.#removedMeanwhile = removed
    try {
      for (const uploadId of await this.uploads()) {
        const folder = this.#pathOf(uploadId)
        let bytes = 0
        for (const name of await namesIn(folder)) bytes += (await statOf(join(folder, name)))?.size ?? 0
        if (bytes > 0) found.push({ uploadId, owner: await ownerOf(uploadId), bytes })
      }
    } finally {
      this.#removedMeanwhile = undefined
    }
    // Only a complete count counts: the next attempt begins anew, and what is gone by now will not be given back.
    for (const { uploadId, owner, bytes } of found) {
      const left = bytes - (removed.get(uploadId) ?? 0)
      if (left > 0) this.#bytes.found(uploadId, owner, left)
    }
  }

  #give(uploadId: string, bytes: number): void {
    this.#removedMeanwhile?.set(uploadId, (this.#removedMeanwhile.get(uploadId) ?? 0) + bytes)
    this.#bytes.give(uploadId, bytes)
  }

  /** Ids of all uploads with a folder here. */
  async uploads(): Promise<string[]> {
    return (await namesIn(this.#folder)).filter(isUploadId)
  }

  /** Time of the last change to the upload's folder, milliseconds since 1970; undefined when there is no folder. */
  async changed(uploadId: string): Promise<number | undefined> {
    return (await statOf(this.#pathOf(uploadId)))?.mtimeMs
  }

  /**
   * Time of the last write to the file, milliseconds since 1970; undefined when there is no file, or while it is being
   * written.
   */
  async fileChanged(uploadId: string, file: string): Promise<number | undefined> {
    for (const part of this.#open.get(uploadId) ?? []) if (part.file === file) return undefined
    return (await statOf(join(this.#pathOf(uploadId), file)))?.mtimeMs
  }

  /** Abandons every part that is being written. */
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
