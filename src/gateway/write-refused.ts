import { S3Error } from '../common/errors/s3-error.js'

/** The gateway has refused a write because of an earlier write to its key. Nothing was changed. */
export class WriteRefused extends S3Error {
  /** Fence of the last write to the key; undefined when the object had another generation than expected. */
  readonly last: number | undefined
  /** False when the upload has consumed bytes that cannot be sent again, so that another `commit` is useless. */
  readonly repeatable: boolean

  constructor(last: number | undefined, repeatable = true) {
    super('ServiceUnavailable', {
      message: 'Another write to this key came first. Try again.',
      headers: { 'retry-after': '1' },
    })
    this.last = last
    this.repeatable = repeatable
  }
}
