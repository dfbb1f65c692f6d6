import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { noSuchUpload, stagingFailed } from './errors.js'
import { FileWriter } from './file-writer.js'
import { FILE_MODE, syncFolder } from './folders.js'
import type { PartWriter } from './state.js'

/**
 * One part on its way to disk. `writing` until finish; `finished` until a record holds it (`keep`) or it is discarded. When its upload ends first,
 * every further call but `discard` throws NoSuchUpload.
 */
export class StagedPart implements PartWriter {
  readonly file: string
  readonly #folder: string
  readonly #handle: FileHandle
  readonly #writer: FileWriter
  readonly #gone: () => void
  #state: 'writing' | 'finished' | 'kept' | 'discarded' = 'writing'
  #ended = false
  #finishing: Promise<string> | undefined
  #closing: Promise<void> | undefined

  private constructor(folder: string, file: string, handle: FileHandle, gone: () => void) {
    this.#folder = folder
    this.file = file
    this.#handle = handle
    this.#writer = new FileWriter(handle)
    this.#gone = gone
  }

  /** `gone` is called once nobody has to look after the part any more. */
  static async open(folder: string, file: string, gone: () => void): Promise<StagedPart> {
    return new StagedPart(folder, file, await open(join(folder, file), 'wx', FILE_MODE), gone)
  }

  write(chunk: Buffer): void | Promise<void> {
    if (this.#ended) return Promise.reject(noSuchUpload())
    if (this.#state !== 'writing') return Promise.reject(new Error(`A part that is ${this.#state} takes no more bytes`))
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
    } catch (error) {
      throw stagingFailed(error)
    } finally {
      this.#gone()
    }
  }

  /** The upload is no more. */
  async end(): Promise<void> {
    this.#ended = true
    await this.discard()
  }

  /** A record holds the bytes now. */
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
      throw this.#ended ? noSuchUpload(error) : stagingFailed(error)
    }
    if (this.#ended) throw noSuchUpload()
    return this.file
  }

  #close(): Promise<void> {
    this.#closing ??= this.#handle.close()
    return this.#closing
  }
}
