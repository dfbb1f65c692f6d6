import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { slowDown } from '../../../common/errors/s3-error.js'
import { FILE_MODE, syncFolder } from '../../../common/files/private-file.js'
import { clientOf, type Quota, type QuotaBounds } from '../../../common/quota.js'
import { errorCode, noSuchUpload, stagingFailed } from '../errors.js'
import { FileWriter } from '../files.js'
import type { OpenPart } from './staging.js'

interface PartDeps {
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

  private constructor(folder: string, file: string, handle: FileHandle, { room, gone }: PartDeps) {
    this.#folder = folder
    this.file = file
    this.#handle = handle
    this.#writer = new FileWriter(handle)
    this.#gone = gone
    this.#room = room
  }

  static async open(folder: string, file: string, deps: PartDeps): Promise<StagedPart> {
    return new StagedPart(folder, file, await open(join(folder, file), 'wx', FILE_MODE), deps)
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

  async end(): Promise<void> {
    this.#ended = true
    await this.discard()
  }

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

/** The parts that a process is writing, or has written and neither kept nor discarded. */
export class OpenParts<Part extends OpenPart> {
  readonly #parts = new Map<string, Set<Part>>()

  /** @param open gets what the part calls once it needs no attention any more */
  async open(room: PartRoom, uploadId: string, open: (gone: () => void) => Promise<Part>): Promise<Part> {
    try {
      const part = await open(() => this.#forget(uploadId, part))
      const parts = this.#parts.get(uploadId)
      if (parts) parts.add(part)
      else this.#parts.set(uploadId, new Set([part]))
      return part
    } catch (error) {
      room.giveAll()
      throw stagingFailed(error)
    }
  }

  /** Open parts of one upload. */
  of(uploadId: string): readonly Part[] {
    return [...(this.#parts.get(uploadId) ?? [])]
  }

  keep(uploadId: string, file: string): void {
    for (const part of this.of(uploadId)) if (part.file === file) part.keep()
  }

  async discardAll(): Promise<void> {
    await Promise.all([...this.#parts.values()].flatMap((parts) => [...parts].map((part) => part.discard())))
  }

  #forget(uploadId: string, part: Part): void {
    const parts = this.#parts.get(uploadId)
    parts?.delete(part)
    if (parts?.size === 0) this.#parts.delete(uploadId)
  }
}

const GiB = 1024 ** 3

export const defaultStagedBounds: QuotaBounds = Object.freeze({ total: 1024 * GiB, perClient: 512 * GiB })

/** Bytes of a part that room is taken for before they arrive, at most. */
const MAX_RESERVED_BYTES = 64 * 1024 * 1024

interface Staged {
  readonly client: string
  bytes: number
}

/** The bytes of parts on disk: of each upload, of each access key, and of all together, which has bounds. */
export class StagedBytes {
  readonly #quota: Quota
  readonly #uploads = new Map<string, Staged>()

  constructor(quota: Quota) {
    this.#quota = quota
  }

  get held(): number {
    return this.#quota.held
  }

  /** Counts what an upload has on disk already, also beyond the bounds. */
  found(uploadId: string, accessKeyId: string, bytes: number): void {
    const staged = this.#of(uploadId, accessKeyId)
    staged.bytes += bytes
    this.#quota.count(staged.client, bytes)
  }

  /** Throws SlowDown when the access key, or all together, would have too much on disk. */
  take(uploadId: string, accessKeyId: string, bytes: number): void {
    const staged = this.#of(uploadId, accessKeyId)
    if (this.#quota.take(staged.client, bytes)) staged.bytes += bytes
    else {
      if (staged.bytes === 0) this.#uploads.delete(uploadId)
      throw slowDown(
        'There is no room for more parts of multipart uploads: complete or abort uploads that are under way, or raise --max-staged-bytes.',
      )
    }
  }

  /** For bytes that are gone; Infinity for all of an upload, whose bytes may have been given back already. */
  give(uploadId: string, bytes: number): void {
    const staged = this.#uploads.get(uploadId)
    if (!staged) return
    const given = Math.min(bytes, staged.bytes)
    staged.bytes -= given
    this.#quota.give(staged.client, given)
    if (staged.bytes === 0) this.#uploads.delete(uploadId)
  }

  /**
   * Takes room for a part. Throws SlowDown.
   * @param length bytes that it will have, if known
   */
  roomFor(uploadId: string, accessKeyId: string, length = 0): PartRoom {
    return new PartRoom(
      (bytes) => this.take(uploadId, accessKeyId, bytes),
      (bytes) => this.give(uploadId, bytes),
      Math.min(length, MAX_RESERVED_BYTES),
    )
  }

  /** Gives back the bytes of uploads that other proxies have ended. */
  async giveEnded(hasEnded: (uploadId: string) => Promise<boolean>): Promise<void> {
    for (const uploadId of [...this.#uploads.keys()]) {
      if (await hasEnded(uploadId)) this.give(uploadId, Number.POSITIVE_INFINITY)
    }
  }

  #of(uploadId: string, accessKeyId: string): Staged {
    const known = this.#uploads.get(uploadId)
    if (known) return known
    const staged = { client: clientOf(accessKeyId, ''), bytes: 0 }
    this.#uploads.set(uploadId, staged)
    return staged
  }
}

/** The room that one part takes while it is written. */
export class PartRoom {
  readonly #take: (bytes: number) => void
  readonly #give: (bytes: number) => void
  #taken: number
  #written = 0

  /**
   * Throws SlowDown.
   * @param take throws SlowDown
   * @param ahead bytes to take at once
   */
  constructor(take: (bytes: number) => void, give: (bytes: number) => void, ahead: number) {
    this.#take = take
    this.#give = give
    take(ahead)
    this.#taken = ahead
  }

  /** Counts bytes that arrive. Throws SlowDown when a part grows beyond the room for it. */
  add(bytes: number): void {
    this.#written += bytes
    if (this.#written <= this.#taken) return
    this.#take(this.#written - this.#taken)
    this.#taken = this.#written
  }

  /** Gives back the room of a body that was shorter than it said. */
  giveRest(): void {
    this.#give(this.#taken - this.#written)
    this.#taken = this.#written
  }

  giveAll(): void {
    this.#give(this.#taken)
    this.#taken = 0
  }

  /** The room was given back with that of the whole upload. */
  forget(): void {
    this.#taken = 0
  }
}
