import type { Logger } from '../log.js'
import { noSuchUpload } from './errors.js'
import type { Staging } from './staging.js'
import type { CompletedUpload, Locks, PartRecord, PartWriter, UploadRecord, Uploads } from './state.js'
import type { Table } from './table.js'
import { isUploadId, partKey } from './upload-names.js'
import { UploadSweep } from './upload-sweep.js'

export interface UploadsOptions {
  readonly uploads: Table<UploadRecord>
  readonly parts: Table<PartRecord>
  readonly completed: Table<CompletedUpload>
  readonly staging: Staging
  readonly locks: Locks
  readonly log: Logger
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Part records read or removed at a time. */
const PAGE = 1000

/**
 * Multipart uploads: records in Keyv, one key per part, bytes in local staging. A part is a record together with its file: each is made durable before the
 * answer, file first. The names in the upload's folder say which part records there may be, for Keyv cannot list them; so when an upload ends its own
 * record goes first, then the part records, then the folder, and whatever stops it in between, `sweep` finds the folder and goes on.
 */
export class KeyvUploads implements Uploads {
  readonly #uploads: Table<UploadRecord>
  readonly #parts: Table<PartRecord>
  readonly #completed: Table<CompletedUpload>
  readonly #staging: Staging
  readonly #locks: Locks
  readonly #log: Logger
  readonly #sweep: UploadSweep

  constructor(options: UploadsOptions) {
    this.#uploads = options.uploads
    this.#parts = options.parts
    this.#completed = options.completed
    this.#staging = options.staging
    this.#locks = options.locks
    this.#log = options.log
    this.#sweep = new UploadSweep({
      ...options,
      end: (uploadId, still) => this.#end(uploadId, still),
      withPart: (uploadId, partNumber, run) => this.#withPart(uploadId, partNumber, run),
    })
  }

  /** `uploadId`: 16 to 128 of A-Z a-z 0-9 _ -, never used before. */
  async create(upload: UploadRecord): Promise<void> {
    if (!isUploadId(upload.uploadId)) throw new RangeError('An upload id has 16 to 128 of A-Z a-z 0-9 _ -')
    await this.#staging.makeUpload(upload.uploadId)
    await this.#uploads.set(upload.uploadId, upload)
  }

  async get(uploadId: string): Promise<UploadRecord | undefined> {
    return isUploadId(uploadId) ? this.#uploads.get(uploadId) : undefined
  }

  async list(bucket: string): Promise<UploadRecord[]> {
    const found: UploadRecord[] = []
    for await (const [, upload] of this.#uploads.entries()) if (upload.bucket === bucket) found.push(upload)
    return found
  }

  async openPart(uploadId: string, partNumber: number): Promise<PartWriter> {
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > 99_999) {
      throw new RangeError('A part number is a whole number from 1')
    }
    return this.#withPart(uploadId, partNumber, async () => {
      if (!(await this.get(uploadId))) throw noSuchUpload()
      // Another proxy may have begun the upload: the folder is made where the part arrives.
      await this.#staging.makeUpload(uploadId)
      return this.#staging.openPart(uploadId, partNumber)
    })
  }

  async putPart(uploadId: string, part: PartRecord): Promise<void> {
    await this.#withPart(uploadId, part.partNumber, async () => {
      if (!(await this.get(uploadId))) throw noSuchUpload()
      await this.#staging.check(uploadId, part)
      const key = partKey(uploadId, part.partNumber)
      const earlier = await this.#parts.get(key)
      await this.#parts.set(key, part)
      this.#staging.keep(uploadId, part.file)
      if (earlier && earlier.file !== part.file) await this.#removeReplaced(uploadId, earlier.file)
    })
  }

  async listParts(uploadId: string, after: number, limit: number): Promise<PartRecord[]> {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    const files = await this.#staging.files(uploadId)
    const numbers = [...files.keys()].filter((number) => number > after).sort((a, b) => a - b)
    const found: PartRecord[] = []
    for (let i = 0; i < numbers.length && found.length < limit; ) {
      const page = numbers.slice(i, i + Math.min(PAGE, limit - found.length))
      i += page.length
      for (const part of await this.#parts.getMany(page.map((number) => partKey(uploadId, number)))) {
        if (part && (await this.#isStaged(uploadId, part, files))) found.push(part)
      }
    }
    return found
  }

  async readPart(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void> {
    await this.#staging.read(uploadId, part, sink)
  }

  async completed(uploadId: string): Promise<CompletedUpload | undefined> {
    return isUploadId(uploadId) ? this.#completed.get(uploadId) : undefined
  }

  /** Throws only when the outcome could not be kept; what is left of the upload then or later, `sweep` removes. */
  async finish(done: CompletedUpload): Promise<void> {
    if (!isUploadId(done.uploadId)) throw noSuchUpload()
    await this.#completed.set(done.uploadId, done)
    try {
      await this.#end(done.uploadId)
    } catch (error) {
      this.#log.error({ err: error, uploadId: done.uploadId }, 'a completed upload could not be cleared away yet')
    }
  }

  /** Throws NoSuchUpload when there is none. */
  async abort(uploadId: string): Promise<void> {
    const ended = await this.#end(uploadId, async () => (await this.get(uploadId)) !== undefined)
    if (!ended) throw noSuchUpload()
  }

  sweep(before: number): Promise<number> {
    return this.#sweep.run(before)
  }

  /** Forgets the upload and removes its bytes, if `still` says so once nobody else is at it. */
  async #end(uploadId: string, still: () => Promise<boolean> = async () => true): Promise<boolean> {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    return this.#locks.withSubtree(lockScope(uploadId), '', async () => {
      if (!(await still())) return false
      await this.#uploads.delete(uploadId)
      const numbers = [...(await this.#staging.files(uploadId)).keys()]
      for (let i = 0; i < numbers.length; i += PAGE) {
        await this.#parts.deleteMany(numbers.slice(i, i + PAGE).map((number) => partKey(uploadId, number)))
      }
      await this.#staging.removeUpload(uploadId)
      return true
    })
  }

  /** Keeps out the same part number and the end of the upload, not other parts. Never held while bytes stream. */
  async #withPart<T>(uploadId: string, partNumber: number, run: () => Promise<T>): Promise<T> {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    return this.#locks.withKey(lockScope(uploadId), String(partNumber), run)
  }

  /** The new part is acknowledged whatever happens here: left bytes go with the upload or in a sweep. */
  async #removeReplaced(uploadId: string, file: string): Promise<void> {
    try {
      await this.#staging.removeFile(uploadId, file)
    } catch (error) {
      this.#log.warn({ err: error, uploadId, file }, 'a replaced part could not be removed yet')
    }
  }

  async #isStaged(uploadId: string, part: PartRecord, files: Map<number, string[]>): Promise<boolean> {
    if (files.get(part.partNumber)?.includes(part.file)) return true
    // It may have been replaced after the folder was read.
    if (await this.#staging.has(uploadId, part.file)) return true
    this.#log.warn({ uploadId, partNumber: part.partNumber, file: part.file }, 'a part has lost its bytes')
    return false
  }
}

/** An upload's own scope of locks, beside those of buckets, whose names hold no '/'. Callers lock an upload by other names and may hold theirs. */
function lockScope(uploadId: string): string {
  return `upload/${uploadId}`
}
