import { createHash } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logging } from '../../../common/log.js'
import type { Locks } from '../../api/locks.js'
import type {
  CompletedUpload,
  CompletionAttempt,
  PartRecord,
  PartWriter,
  UploadBound,
  UploadRecord,
  Uploads,
} from '../../api/uploads.js'
import { noSuchUpload, stagedElsewhere } from '../errors.js'
import type { Table } from '../records/table.js'
import type { StagedBytes } from './staged-part.js'
import { isUploadId, type Staging } from './staging.js'
import { PartSums, readSummed } from './summed-part.js'
import { BegunUploads, partKey, type UploadIds, UploadSweep } from './upload-sweep.js'

interface UploadsOptions extends Logging {
  readonly uploads: Table<UploadRecord>
  readonly parts: Table<PartRecord>
  readonly completed: Table<CompletedUpload>
  readonly begun: Table<UploadIds>
  readonly staging: Staging
  readonly stagedBytes: StagedBytes
  /** Id of the place of the staging; undefined for the data folder of the only process that uses the records. */
  readonly home: string | undefined
  /** True when other proxies stage parts in the same place. */
  readonly sharedStaging: boolean
  readonly locks: Locks
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The attempts to complete an upload. A proxy of an older release leaves those of newer ones, and adds its own. */
export function attemptsOf({ attempts = [], attempted }: UploadRecord): readonly CompletionAttempt[] {
  return attempted ? [...attempts, attempted] : attempts
}

/**
 * Returns the same id for every repetition of the call, so that a repeated call recognizes the object whose answer was
 * lost.
 */
export function writeIdOf({ uploadId }: Pick<UploadRecord, 'uploadId'>, fingerprint: string): string {
  return createHash('sha256').update(`${uploadId}\n${fingerprint}`).digest('base64url')
}

/** S3's greatest part number. */
const LAST_PART = 10_000

/** Part records read or removed at a time. */
const PAGE = 1000

/**
 * Multipart uploads: records in Keyv with one key per part, and bytes in a staging. A part is a record together with
 * its file; both are durable before the answer, the file first. Keyv cannot list records: the names of the upload's
 * files tell which part records may exist, or all that could are requested. An upload ends in this order: its own
 * record, the part records, the files. After an interruption `sweep` finds the files and continues.
 */
export class KeyvUploads implements Uploads {
  readonly #uploads: Table<UploadRecord>
  readonly #parts: Table<PartRecord>
  readonly #completed: Table<CompletedUpload>
  readonly #staging: Staging
  readonly #stagedBytes: StagedBytes
  readonly #sharedStaging: boolean
  readonly #home: string | undefined
  readonly #locks: Locks
  /** Logs what no caller logs. */
  readonly #own: Logging
  readonly #begun: BegunUploads
  readonly #sums = new PartSums()
  readonly #sweep: UploadSweep
  #counted: Promise<void> | undefined

  constructor(options: UploadsOptions) {
    this.#uploads = options.uploads
    this.#parts = options.parts
    this.#completed = options.completed
    this.#staging = options.staging
    this.#stagedBytes = options.stagedBytes
    this.#sharedStaging = options.sharedStaging
    this.#home = options.home
    this.#locks = options.locks
    this.#own = options
    this.#begun = new BegunUploads(options)
    this.#sweep = new UploadSweep({
      ...options,
      isHere: (upload) => this.#isHere(upload),
      end: (uploadId, still) => this.#end(uploadId, this.#own, still),
      withPart: (uploadId, partNumber, run) => this.#withPart(uploadId, partNumber, this.#own, run),
    })
  }

  /** `uploadId`: 16 to 128 of A-Z a-z 0-9 _ -, never used before. */
  async create(upload: UploadRecord, bound: UploadBound = {}): Promise<number | undefined> {
    if (!isUploadId(upload.uploadId)) throw new RangeError('An upload id has 16 to 128 of A-Z a-z 0-9 _ -')
    return this.#begun.begin(upload, bound, async () => {
      await this.#staging.makeUpload(upload.uploadId)
      await this.#uploads.set(upload.uploadId, { ...upload, ...(this.#home !== undefined && { home: this.#home }) })
    })
  }

  async get(uploadId: string): Promise<UploadRecord | undefined> {
    return isUploadId(uploadId) ? this.#uploads.get(uploadId) : undefined
  }

  async requireHere(upload: UploadRecord): Promise<void> {
    if (!(await this.#isHere(upload))) throw stagedElsewhere()
  }

  async list(bucket: string): Promise<UploadRecord[]> {
    const found: UploadRecord[] = []
    for await (const [, upload] of this.#uploads.entries()) if (upload.bucket === bucket) found.push(upload)
    return found
  }

  async openPart(
    uploadId: string,
    partNumber: number,
    length?: number,
    logger: Logging = this.#own,
  ): Promise<PartWriter> {
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > 99_999) {
      throw new RangeError('A part number is a whole number from 1')
    }
    return this.#withPart(uploadId, partNumber, logger, async () => {
      const { accessKeyId } = await this.#requireOwn(uploadId)
      await this.#countOnce()
      // An older release may have begun the upload, or its folder may be lost.
      await this.#staging.makeUpload(uploadId)
      const open = async () =>
        this.#sums.summed(uploadId, await this.#staging.openPart(uploadId, partNumber, accessKeyId, length))
      if (!this.#sharedStaging) return open()
      return open().catch(async (error) => {
        if (!(error instanceof S3Error && error.code === 'SlowDown')) throw error
        await this.#giveEnded()
        return open()
      })
    })
  }

  async putPart(uploadId: string, part: PartRecord, logger: Logging = this.#own): Promise<void> {
    await this.#withPart(uploadId, part.partNumber, logger, async () => {
      await this.#requireOwn(uploadId)
      await this.#staging.check(uploadId, asStaged(part))
      const key = partKey(uploadId, part.partNumber)
      const earlier = await this.#parts.get(key)
      await this.#parts.set(key, this.#sums.of(uploadId, part))
      this.#sums.kept(uploadId, part)
      this.#staging.keep(uploadId, part.file)
      if (earlier && earlier.file !== part.file) await this.#removeReplaced(uploadId, earlier.file, logger)
    })
  }

  async listParts(uploadId: string, after: number, limit: number, logger: Logging = this.#own): Promise<PartRecord[]> {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    const upload = await this.get(uploadId)
    if (!this.#staging.lists || (upload && !(await this.#isHere(upload))))
      return this.#listRecords(uploadId, after, limit)
    const files = await this.#staging.files(uploadId)
    const numbers = [...files.keys()].filter((number) => number > after).sort((a, b) => a - b)
    const found: PartRecord[] = []
    for (let i = 0; i < numbers.length && found.length < limit; ) {
      const page = numbers.slice(i, i + Math.min(PAGE, limit - found.length))
      i += page.length
      for (const part of await this.#parts.getMany(page.map((number) => partKey(uploadId, number)))) {
        if (part && (await this.#isStaged(uploadId, part, files, logger))) found.push(part)
      }
    }
    return found
  }

  /** Requests all part records that are possible, because no local file names the parts. */
  async #listRecords(uploadId: string, after: number, limit: number): Promise<PartRecord[]> {
    const found: PartRecord[] = []
    for (let first = after + 1; first <= LAST_PART && found.length < limit; first += PAGE) {
      const numbers = Array.from({ length: Math.min(PAGE, LAST_PART - first + 1) }, (_, i) => first + i)
      const parts = await this.#parts.getMany(numbers.map((number) => partKey(uploadId, number)))
      found.push(...parts.filter((part) => part !== undefined))
    }
    return found.slice(0, limit)
  }

  async readPart(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void> {
    await readSummed(part, (each) => this.#staging.read(uploadId, asStaged(part), each), sink)
  }

  async completed(uploadId: string): Promise<CompletedUpload | undefined> {
    return isUploadId(uploadId) ? this.#completed.get(uploadId) : undefined
  }

  async attempt(
    uploadId: string,
    change: (attempts: readonly CompletionAttempt[]) => readonly CompletionAttempt[],
  ): Promise<void> {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    const kept = await this.#uploads.change(uploadId, (upload) => {
      if (!upload) return upload
      const { attempted, attempts: _, ...rest } = upload
      const present = attemptsOf(upload)
      const attempts = change(present)
      return attempts === present ? upload : { ...rest, ...(attempts.length > 0 && { attempts }) }
    })
    if (!kept) throw noSuchUpload()
  }

  /** Throws only when the outcome could not be recorded. `sweep` removes any leftovers. */
  async finish(done: CompletedUpload, logger: Logging = this.#own): Promise<void> {
    if (!isUploadId(done.uploadId)) throw noSuchUpload()
    await this.#completed.set(done.uploadId, done)
    try {
      await this.#end(done.uploadId, logger)
    } catch (error) {
      logger.log.error({ err: error, uploadId: done.uploadId }, 'could not remove a completed upload yet')
    }
  }

  /** Throws NoSuchUpload when there is none. */
  async abort(uploadId: string, logger: Logging = this.#own): Promise<void> {
    const ended = await this.#end(uploadId, logger, async () => (await this.get(uploadId)) !== undefined)
    if (!ended) throw noSuchUpload()
  }

  async sweep(before: number): Promise<number> {
    if (this.#sharedStaging) await this.#giveEnded()
    return this.#sweep.run(before)
  }

  /** Records of an older release do not name a home: their parts are where a folder for them exists. */
  async #isHere({ uploadId, home }: UploadRecord): Promise<boolean> {
    if (this.#home === undefined) return home === undefined
    if (home !== undefined) return home === this.#home
    return (await this.#staging.changed(uploadId)) !== undefined
  }

  async #requireOwn(uploadId: string): Promise<UploadRecord> {
    const upload = await this.get(uploadId)
    if (!upload) throw noSuchUpload()
    await this.requireHere(upload)
    return upload
  }

  /** What is on disk from before the start counts, too. A count that failed is begun anew by the next part. */
  #countOnce(): Promise<void> {
    this.#counted ??= this.#staging
      .count(async (uploadId) => (await this.get(uploadId))?.accessKeyId ?? '')
      .catch((error) => {
        this.#counted = undefined
        throw error
      })
    return this.#counted
  }

  /** Removes the upload's records and bytes, if `still` resolves true under the upload's lock. */
  async #end(uploadId: string, logger: Logging, still: () => Promise<boolean> = async () => true): Promise<boolean> {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    const run = async () => {
      if (!(await still())) return false
      await this.#uploads.delete(uploadId)
      const numbers = this.#staging.lists
        ? [...(await this.#staging.files(uploadId)).keys()]
        : Array.from({ length: LAST_PART }, (_, i) => i + 1)
      for (let i = 0; i < numbers.length; i += PAGE) {
        await this.#parts.deleteMany(numbers.slice(i, i + PAGE).map((number) => partKey(uploadId, number)))
      }
      await this.#staging.removeUpload(uploadId, logger)
      return true
    }
    return this.#locks.withSubtree(lockScope(uploadId), '', run, { logger })
  }

  /** Other proxies end uploads of which this one has counted bytes. */
  #giveEnded(): Promise<void> {
    return this.#stagedBytes.giveEnded(async (uploadId) => (await this.get(uploadId)) === undefined)
  }

  /** Excludes the same part number and the end of the upload, but not other parts. Never held while bytes stream. */
  async #withPart<T>(uploadId: string, partNumber: number, logger: Logging, run: () => Promise<T>): Promise<T> {
    if (!isUploadId(uploadId)) throw noSuchUpload()
    return this.#locks.withKey(lockScope(uploadId), String(partNumber), run, { logger })
  }

  /** The new part is acknowledged in any case: leftover bytes go with the upload or a sweep. */
  async #removeReplaced(uploadId: string, file: string, logger: Logging): Promise<void> {
    try {
      await this.#staging.removeFile(uploadId, file)
    } catch (error) {
      logger.log.warn({ err: error, uploadId, file }, 'could not remove a replaced part yet')
    }
  }

  async #isStaged(uploadId: string, part: PartRecord, files: Map<number, string[]>, logger: Logging): Promise<boolean> {
    if (files.get(part.partNumber)?.includes(part.file)) return true
    // The part may have been replaced after the folder was read.
    if (await this.#staging.has(uploadId, part.file)) return true
    logger.log.warn({ uploadId, partNumber: part.partNumber, file: part.file }, 'the bytes of a part are missing')
    return false
  }
}

/** The part with the size of its staged bytes. */
function asStaged(part: PartRecord): PartRecord {
  return part.staged === undefined ? part : { ...part, size: part.staged }
}

/**
 * The scope for locks of an upload, distinct from buckets, whose names contain no '/'. Callers lock an upload by other
 * names and may hold those locks.
 */
function lockScope(uploadId: string): string {
  return `upload/${uploadId}`
}
