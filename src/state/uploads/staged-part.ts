import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { FILE_MODE } from '../../common/files/private-file.js'
import { syncFolder } from '../../common/files/sync-folder.js'
import { errorCode, noSuchUpload, stagingFailed } from '../errors.js'
import { FileWriter } from '../files/file-writer.js'
import type { PartRoom } from './staged-bytes.js'
import type { OpenPart } from './staging.js'

/** Where a part belongs. */
export interface PartPlace {
  readonly room: PartRoom
  /** Called once the part needs no attention any more. */
  readonly gone: () => void
}

/**
 * A part that is being written to disk. Its state is `writing` until `finish`, then `finished` until a record refers to
 * it (`keep`) or it is discarded. When its upload ends first, all further calls except `discard` throw NoSuchUpload.
 */
export class StagedPart implements OpenPart {
  readonly file: string
  readonly #folder: string
  readonly #handle: FileHandle
  readonly #writer: FileWriter
  readonly #gone: () => void
  readonly #room: PartRoom
  #state: 'writing' | 'finished' | 'kept' | 'discarded' = 'writing'
  #ended = false
  #finishing: Promise<string> | undefined
  #closing: Promise<void> | undefined

  private constructor(folder: string, file: string, handle: FileHandle, { room, gone }: PartPlace) {
    this.#folder = folder
    this.file = file
    this.#handle = handle
    this.#writer = new FileWriter(handle)
    this.#gone = gone
    this.#room = room
  }

  static async open(folder: string, file: string, place: PartPlace): Promise<StagedPart> {
    return new StagedPart(folder, file, await open(join(folder, file), 'wx', FILE_MODE), place)
  }

  write(chunk: Buffer): void | Promise<void> {
    if (this.#ended) return Promise.reject(noSuchUpload())
    if (this.#state !== 'writing') return Promise.reject(new Error(`A part that is ${this.#state} takes no more bytes`))
    try {
      this.#room.add(chunk.length)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#writer.write(chunk)?.catch((error: unknown) => {
      throw this.#ended ? noSuchUpload(error) : stagingFailed(error)
    })
  }

  finish(): Promise<string> {
    if (this.#ended) return Promise.reject(noSuchUpload())
    if (this.#state === 'discarded') return Promise.reject(new Error('A part that is discarded cannot be finished'))
    this.#finishing ??= this.#finish()
    return this.#finishing
  }

  async discard(): Promise<void> {
    if (this.#state === 'kept') return
    this.#state = 'discarded'
    try {
      await this.#writer.abandon()
      await this.#close()
      await rm(join(this.#folder, this.file), { force: true })
      if (this.#ended) this.#room.forget()
      else this.#room.giveAll()
    } catch (error) {
      throw stagingFailed(error)
    } finally {
      this.#gone()
    }
  }

  /** Ends the part because its upload has ended. */
  async end(): Promise<void> {
    this.#ended = true
    await this.discard()
  }

  /** Marks the bytes as belonging to a record. */
  keep(): void {
    this.#state = 'kept'
    this.#gone()
  }

  async #finish(): Promise<string> {
    this.#state = 'finished'
    try {
      await this.#writer.flush(true)
      await this.#close()
      await syncFolder(this.#folder)
    } catch (error) {
      // The folder is gone: another proxy has ended the upload.
      throw this.#ended || errorCode(error) === 'ENOENT' ? noSuchUpload(error) : stagingFailed(error)
    }
    if (this.#ended) throw noSuchUpload()
    this.#room.giveRest()
    return this.file
  }

  #close(): Promise<void> {
    this.#closing ??= this.#handle.close()
    return this.#closing
  }
}
