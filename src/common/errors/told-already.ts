import type { Logger } from '../log.js'

/**
 * As the cause of an S3Error: the failure has one line in the log for all requests that fail because of it. Has no
 * stack.
 */
export class ToldAlready extends Error {
  override readonly name = 'ToldAlready'

  readonly #tell: ((log: Logger, facts: object) => void) | undefined

  /** @param tell logs the failure, unless that was done before; absent: it has been logged */
  constructor(message: string, tell?: (log: Logger, facts: object) => void) {
    super(message)
    this.stack = message
    this.#tell = tell
  }

  /** @param facts of the request that failed, for the line if one is due */
  tell(log: Logger, facts: object = {}): void {
    this.#tell?.(log, facts)
  }
}

/** True if the failure needs no further line: if its one line is still due, `log` gets it. */
export function isTold(error: unknown, log: Logger): boolean {
  if (!(error instanceof Error && error.cause instanceof ToldAlready)) return false
  error.cause.tell(log)
  return true
}
