import { unless } from '../../../common/errors/s3-error.js'
import type { Logger, Logging } from '../../../common/log.js'
import { DAY_MS, HOUR_MS } from '../../../common/time.js'
import type { Locks } from '../../api/locks.js'
import type { CompletedUpload, PartRecord, UploadBound, UploadRecord, Uploads } from '../../api/uploads.js'
import type { Table } from '../records/table.js'
import type { Staging } from './staging.js'

interface UploadSweepOptions {
  readonly uploads: Table<UploadRecord>
  readonly parts: Table<PartRecord>
  readonly completed: Table<CompletedUpload>
  readonly staging: Staging
  readonly log: Logger
  readonly now: () => number
  /** True when other proxies stage parts in the same place. */
  readonly sharedStaging: boolean
  /** True when the upload's parts are staged in this data folder. */
  readonly isHere: (upload: UploadRecord) => Promise<boolean>
  /** Ends the upload if `still` resolves true under the upload's lock. Resolves whether it did. */
  readonly end: (uploadId: string, still: () => Promise<boolean>) => Promise<boolean>
  readonly withPart: <T>(uploadId: string, partNumber: number, run: () => Promise<T>) => Promise<T>
}

/** Age below which bytes without a record are kept, ms: an upload or part may be about to get its record. */
const GRACE_MS = HOUR_MS

/** The same where other proxies write, too: a slow part may have got no bytes for long, and clocks differ. */
const SHARED_GRACE_MS = DAY_MS

/**
 * Time for which an expired upload of another proxy is left to that proxy, ms; afterwards that proxy counts as gone for
 * good.
 */
const OTHERS_MS = DAY_MS

/** Removes expired uploads and the leftovers of crashes. Logs a failure at one upload and continues. */
export class UploadSweep {
  readonly #options: UploadSweepOptions
  readonly #graceMs: number

  constructor(options: UploadSweepOptions) {
    this.#options = options
    this.#graceMs = options.sharedStaging ? SHARED_GRACE_MS : GRACE_MS
  }

  /**
   * @param before milliseconds since 1970
   * @returns the number of expired uploads
   */
  async run(before: number): Promise<number> {
    const { uploads, staging } = this.#options
    let expired = 0
    for await (const [uploadId, upload] of uploads.entries()) {
      await this.#guarded(uploadId, async () => {
        const here = await this.#options.isHere(upload)
        if (upload.initiated < (here ? before : before - OTHERS_MS)) {
          if (await this.#options.end(uploadId, async () => (await uploads.get(uploadId)) !== undefined)) expired++
        } else if (here && (await this.#options.completed.get(uploadId))) {
          // Its outcome was recorded, and then the process was interrupted.
          await this.#options.end(uploadId, async () => true)
        }
      })
    }
    for (const uploadId of await staging.uploads()) {
      await this.#guarded(uploadId, async () => {
        if (await uploads.get(uploadId)) await this.#removeStrays(uploadId)
        else if (this.#isOld(await staging.changed(uploadId))) {
          await this.#options.end(uploadId, async () => (await uploads.get(uploadId)) === undefined)
        }
      })
    }
    return expired
  }

  /**
   * Removes files of a current upload that no record names: leftovers of a crash before the record was written, or of a
   * replaced part.
   */
  async #removeStrays(uploadId: string): Promise<void> {
    const { parts, staging, withPart } = this.#options
    for (const [number, files] of await staging.filesBefore(uploadId, this.#options.now() - this.#graceMs)) {
      for (const file of files) {
        await withPart(uploadId, number, async () => {
          if ((await parts.get(partKey(uploadId, number)))?.file === file) return
          await staging.removeFile(uploadId, file)
        })
      }
    }
  }

  #isOld(changed: number | undefined): boolean {
    return changed !== undefined && changed < this.#options.now() - this.#graceMs
  }

  async #guarded(uploadId: string, run: () => Promise<void>): Promise<void> {
    try {
      await run()
    } catch (error) {
      this.#options.log.error({ err: error, uploadId }, 'could not sweep an upload')
    }
  }
}

/**
 * Ends the uploads to a deleted bucket, as S3 does. Includes an upload that is being completed, which then fails as it
 * would a moment later.
 * @param before milliseconds since 1970: later uploads belong to another bucket of that name
 * @param logger who gets the lines about it; absent for the server
 */
export async function endUploads(
  uploads: Pick<Uploads, 'list' | 'abort'>,
  bucket: string,
  before: number,
  logger?: Logging,
): Promise<void> {
  for (const { uploadId, initiated } of await uploads.list(bucket)) {
    if (initiated > before) continue
    await unless('NoSuchUpload', uploads.abort(uploadId, logger), undefined)
  }
}

/**
 * False for an upload to an earlier bucket of that name, where the gateway distinguishes them. The record keeps the
 * creation time under the name `birth`.
 */
export function isOfBucket(upload: Pick<UploadRecord, 'birth'>, creationTime: string | undefined): boolean {
  return upload.birth === undefined || creationTime === undefined || upload.birth === creationTime
}

/** Lengths of a list at which the ids of ended uploads are dropped: otherwise it would grow as long as the quota. */
const CHECKED_EVERY = 64

/** Uploads of an account whose uploads are bounded: all that are under way, and some that have ended. */
export interface UploadIds {
  readonly uploadIds: readonly string[]
}

interface BegunUploadsOptions {
  /** Ids of the uploads under way, by the canonical id of the account. */
  readonly begun: Table<UploadIds>
  readonly uploads: Table<UploadRecord>
  readonly locks: Locks
}

/**
 * Counts the uploads of accounts that have a quota of them. The end of an upload costs nothing here: the ids of ended
 * ones are dropped when the list has reached the quota or a multiple of 64. All records of uploads are read only when
 * an account gets its first quota.
 */
export class BegunUploads {
  readonly #options: BegunUploadsOptions

  constructor(options: BegunUploadsOptions) {
    this.#options = options
  }

  /**
   * Runs `create` unless as many uploads of the account are under way as may be. Processes on one state count together.
   * @returns the number of those under way if `create` was not run
   */
  async begin(
    { uploadId, account }: Pick<UploadRecord, 'uploadId' | 'account'>,
    { most, logger }: UploadBound,
    create: () => Promise<void>,
  ): Promise<number | undefined> {
    const { begun, locks } = this.#options
    if (account === undefined || most === undefined) {
      // The list would lack this upload, if the account got a bound again.
      if (account !== undefined && (await begun.get(account))) await begun.delete(account)
      await create()
      return undefined
    }
    const run = async () => {
      const before = (await begun.get(account))?.uploadIds ?? (await this.#find(account))
      const isDue = before.length >= most || before.length % CHECKED_EVERY === 0
      const present = isDue ? await this.#underWay(before) : before
      if (present.length >= most) {
        if (present.length < before.length) await begun.set(account, { uploadIds: present })
        return present.length
      }
      // Before the upload: one that is not in the list would not count.
      await begun.set(account, { uploadIds: [...present, uploadId] })
      await create()
      return undefined
    }
    return locks.withName(`uploads-of/${account}`, run, { logger })
  }

  async #find(account: string): Promise<readonly string[]> {
    const found: string[] = []
    for await (const [uploadId, upload] of this.#options.uploads.entries())
      if (upload.account === account) found.push(uploadId)
    return found
  }

  async #underWay(uploadIds: readonly string[]): Promise<readonly string[]> {
    const uploads = await this.#options.uploads.getMany(uploadIds)
    return uploadIds.filter((_, i) => uploads[i] !== undefined)
  }
}

export function partKey(uploadId: string, partNumber: number): string {
  return `${uploadId}/${partNumber}`
}
