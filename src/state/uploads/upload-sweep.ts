import { DAY_MS, HOUR_MS } from '../../common/durations.js'
import type { Logger } from '../../common/log.js'
import type { Table } from '../records/table.js'
import type { CompletedUpload, PartRecord, UploadRecord } from '../state.js'
import type { Staging } from './staging.js'
import { partKey } from './upload-names.js'

export interface UploadSweepOptions {
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
