import type { Table } from '../records/table.js'
import type { Locks, UploadBound, UploadRecord } from '../state.js'

/** Lengths of a list at which the ids of ended uploads are dropped: otherwise it would grow as long as the quota. */
const CHECKED_EVERY = 64

/** Uploads of an account whose uploads are bounded: all that are under way, and some that have ended. */
export interface Begun {
  readonly uploadIds: readonly string[]
}

export interface BegunUploadsOptions {
  /** By the canonical id of the account. */
  readonly begun: Table<Begun>
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
    { most, by }: UploadBound,
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
    return locks.withName(`uploads-of/${account}`, run, { by })
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
