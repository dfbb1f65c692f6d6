import { isMarked } from '../../common/errors/s3-error.js'

const RETRY: unique symbol = Symbol.for('dealgate.Retry')

/** Thrown by `run` to run the job again after `afterMs`. The message becomes the phase of the job. */
export class Retry extends Error {
  override readonly name = 'Retry'
  readonly afterMs: number
  constructor(afterMs: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.afterMs = afterMs
  }

  get [RETRY](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, RETRY)
  }
}
