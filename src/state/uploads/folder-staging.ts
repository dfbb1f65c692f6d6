import { open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFoldersSoon, syncFolder } from '../../../common/files/private-file.js'
import type { PartRecord } from '../../api/uploads.js'
import { errorCode, noSuchUpload, partMissing, stagingFailed } from '../errors.js'
import { readFile } from '../files.js'
import { OpenParts, type StagedBytes, StagedPart } from './staged-part.js'
import { addTo, isUploadId, newFile, partNumberOf, type Staging } from './staging.js'

/**
 * The bytes of parts as files, on local disk or on a file system that several proxies share: `<folder>/<upload
 * id>/<part number>-<random>`. Callers open no part while its folder is removed.
 */
export class FolderStaging implements Staging {
  readonly lists: boolean
  readonly #parts = new OpenParts<StagedPart>()
  readonly #folder: string
  readonly #bytes: StagedBytes
  /** While `count` looks: bytes that were removed since it began, by upload. */
  #removedMeanwhile: Map<string, number> | undefined

  /**
   * @param bytes what the parts have on disk together
   * @param shared other proxies stage parts in the folder, too: a listing of a network file system may be out of date
   */
  constructor(folder: string, bytes: StagedBytes, { shared = false } = {}) {
    this.#folder = folder
    this.#bytes = bytes
    this.lists = !shared
  }

  async makeUpload(uploadId: string): Promise<void> {
    try {
      await makeFoldersSoon(this.#pathOf(uploadId))
      await syncFolder(this.#folder)
    } catch (error) {
      throw stagingFailed(error)
    }
  }

  async openPart(uploadId: string, partNumber: number, owner: string, length: number | undefined): Promise<StagedPart> {
    const folder = this.#pathOf(uploadId)
    const name = newFile(partNumber)
    const room = this.#bytes.roomFor(uploadId, owner, length)
    return this.#parts.open(room, uploadId, (gone) => StagedPart.open(folder, name, { room, gone }))
  }

  keep(uploadId: string, file: string): void {
    this.#parts.keep(uploadId, file)
  }

  close(): Promise<void> {
    return this.#parts.discardAll()
  }

  async check(uploadId: string, part: PartRecord): Promise<void> {
    const named = partNumberOf(part.file) === part.partNumber
    const found = named ? await statOf(join(this.#pathOf(uploadId), part.file)) : undefined
    if (found?.size !== part.size) throw partMissing(part, found?.size)
  }

  async files(uploadId: string): Promise<Map<number, string[]>> {
    const found = new Map<number, string[]>()
    for (const name of await namesIn(this.#pathOf(uploadId))) {
      const number = partNumberOf(name)
      if (number === undefined) continue
      addTo(found, number, name)
    }
    return found
  }

  async has(uploadId: string, file: string): Promise<boolean> {
    return partNumberOf(file) !== undefined && (await statOf(join(this.#pathOf(uploadId), file))) !== undefined
  }

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

  async removeUpload(uploadId: string): Promise<void> {
    await Promise.all(this.#parts.of(uploadId).map((part) => part.end()))
    try {
      await rm(this.#pathOf(uploadId), { recursive: true, force: true })
      this.#give(uploadId, Number.POSITIVE_INFINITY)
    } catch (error) {
      throw stagingFailed(error)
    }
  }

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
    // Only a complete count changes the totals: after a failed one the next attempt begins anew, and what was removed
    // meanwhile is neither counted nor given back.
    for (const { uploadId, owner, bytes } of found) {
      const left = bytes - (removed.get(uploadId) ?? 0)
      if (left > 0) this.#bytes.found(uploadId, owner, left)
    }
  }

  #give(uploadId: string, bytes: number): void {
    this.#removedMeanwhile?.set(uploadId, (this.#removedMeanwhile.get(uploadId) ?? 0) + bytes)
    this.#bytes.give(uploadId, bytes)
  }

  async uploads(): Promise<string[]> {
    return (await namesIn(this.#folder)).filter(isUploadId)
  }

  async changed(uploadId: string): Promise<number | undefined> {
    return (await statOf(this.#pathOf(uploadId)))?.mtimeMs
  }

  async filesBefore(uploadId: string, before: number): Promise<Map<number, string[]>> {
    const open = new Set(this.#parts.of(uploadId).map((part) => part.file))
    const old = new Map<number, string[]>()
    for (const [number, names] of await this.files(uploadId)) {
      for (const name of names) {
        const changed = open.has(name) ? undefined : (await statOf(join(this.#pathOf(uploadId), name)))?.mtimeMs
        if (changed !== undefined && changed < before) addTo(old, number, name)
      }
    }
    return old
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
