import type { Logger } from '../log.js'
import type { Staging } from './staging.js'
import type { CompletedUpload, PartRecord, UploadRecord } from './state.js'
import type { Table } from './table.js'
import { partKey } from './upload-names.js'

export interface UploadSweepOptions {
  readonly uploads: Table<UploadRecord>
  readonly parts: Table<PartRecord>
  readonly completed: Table<CompletedUpload>
  readonly staging: Staging
  readonly log: Logger
  readonly now: () => number
  /** Ends the upload if `still` holds once nobody else is at it; tells whether it did. */
  readonly end: (uploadId: string, still: () => Promise<boolean>) => Promise<boolean>
  readonly withPart: <T>(uploadId: string, partNumber: number, run: () => Promise<T>) => Promise<T>
}

/** Bytes without a record are left alone this long, ms: an upload or part may be about to get its record. */
const GRACE_MS = 60 * 60 * 1000

/** Clears away expired uploads, and what crashes left. A failure at one upload is logged and does not stop the rest. */
export class UploadSweep {
  readonly #options: UploadSweepOptions

  constructor(options: UploadSweepOptions) {
    this.#options = options
  }

  /** `before` in ms since 1970. Returns how many uploads were expired. */
  async run(before: number): Promise<number> {
    const { uploads, staging } = this.#options
    let expired = 0
    for await (const [uploadId, upload] of uploads.entries()) {
      await this.#guarded(uploadId, async () => {
        if (upload.initiated < before) {
          if (await this.#options.end(uploadId, async () => (await uploads.get(uploadId)) !== undefined)) expired++
        } else if (await this.#options.completed.get(uploadId)) {
          // Its outcome was kept and then something stopped us.
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

  /** Files in a living upload that no record names: of a crash before the record, or of a replaced part. */
  async #removeStrays(uploadId: string): Promise<void> {
    const { parts, staging, withPart } = this.#options
    for (const [number, files] of await staging.files(uploadId)) {
      for (const file of files) {
        if (!this.#isOld(await staging.fileChanged(uploadId, file))) continue
        await withPart(uploadId, number, async () => {
          if ((await parts.get(partKey(uploadId, number)))?.file === file) return
          await staging.removeFile(uploadId, file)
        })
      }
    }
  }

  #isOld(changed: number | undefined): boolean {
    return changed !== undefined && changed < this.#options.now() - GRACE_MS
  }

  async #guarded(uploadId: string, run: () => Promise<void>): Promise<void> {
    try {
      await run()
    } catch (error) {
      this.#options.log.error({ err: error, uploadId }, 'an upload could not be swept')
    }
  }
}
